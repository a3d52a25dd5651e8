"""What patches do to an overlay, and what they say when they can't."""

import subprocess
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from jobs.contract.builds import BuildSpec
from jobs.node.builds import diffs, patches
from jobs.node.builds.errors import BuildNodeError, BuildSpecError
from jobs.node.builds.linktree import LinkTree
from jobs.node.builds.patches import Applied
from tests.unit import fake_vllm
from tests.unit.fake_vllm import FILES, PLATFORM, STRICT, a_spec

CREATES = """\
diff --git a/vllm/new/thing.py b/vllm/new/thing.py
new file mode 100644
--- /dev/null
+++ b/vllm/new/thing.py
@@ -0,0 +1 @@
+VALUE = 1
"""
DELETES = """\
diff --git a/vllm/envs.py b/vllm/envs.py
deleted file mode 100644
--- a/vllm/envs.py
+++ /dev/null
@@ -1 +0,0 @@
-RUNNER = 'v1'
"""
RENAMES = """\
diff --git a/vllm/envs.py b/vllm/settings.py
similarity index 100%
rename from vllm/envs.py
rename to vllm/settings.py
"""
RUNNER = """\
--- a/vllm/envs.py
+++ b/vllm/envs.py
@@ -1 +1 @@
-RUNNER = 'v1'
+RUNNER = 'v2'
"""
TESTS = """\
diff --git a/tests/test_cpu.py b/tests/test_cpu.py
new file mode 100644
--- /dev/null
+++ b/tests/test_cpu.py
@@ -0,0 +1 @@
+pass
"""
NATIVE = """\
diff --git a/csrc/ops.cu b/csrc/ops.cu
--- a/csrc/ops.cu
+++ b/csrc/ops.cu
@@ -1 +1 @@
-int x;
+int y;
"""


@pytest.fixture
def tree(tmp_path: Path) -> LinkTree:
    root = fake_vllm.write(tmp_path / "base", FILES)
    (tmp_path / "site").mkdir()
    return LinkTree(root=root, site=tmp_path / "site")


def apply(tree: LinkTree, *texts: str) -> Applied:
    patches.check(a_spec(*texts))
    return patches.apply(a_spec(*texts), tree, "0.32.0")


def refusal(tree: LinkTree, *texts: str) -> str:
    with pytest.raises(BuildSpecError) as error:
        apply(tree, *texts)
    return error.value.message


def text(tree: LinkTree, path: str) -> str:
    return (tree.site / path).read_bytes().decode()


def test_a_patch_changes_its_file_in_the_overlay_and_never_the_base(tree: LinkTree) -> None:
    applied = apply(tree, STRICT)

    assert applied == Applied(changed={"vllm/platforms/cpu.py"})
    assert "raise ValueError(asked)" in text(tree, "vllm/platforms/cpu.py")
    assert (tree.root / "vllm/platforms/cpu.py").read_text() == PLATFORM


def test_only_the_changed_file_and_the_folders_above_it_are_real(tree: LinkTree) -> None:
    apply(tree, STRICT)

    real = {str(path.relative_to(tree.site)) for path in tree.entries() if not path.is_symlink()}
    assert real == {"vllm", "vllm/platforms", "vllm/platforms/cpu.py"}


def test_files_are_created_deleted_and_renamed(tree: LinkTree) -> None:
    assert apply(tree, CREATES, RENAMES).changed == {
        "vllm/new/thing.py",
        "vllm/envs.py",
        "vllm/settings.py",
    }
    assert text(tree, "vllm/new/thing.py") == "VALUE = 1\n"
    assert text(tree, "vllm/settings.py") == FILES["vllm/envs.py"]
    assert tree.sha256("vllm/envs.py") is None
    assert (tree.root / "vllm/envs.py").exists()


def test_a_deleted_file_is_gone(tree: LinkTree) -> None:
    apply(tree, DELETES)

    assert tree.sha256("vllm/envs.py") is None


def test_patches_go_on_in_order(tree: LinkTree) -> None:
    back = RUNNER.replace("v2", "v3").replace("v1", "v2")

    apply(tree, RUNNER, back)

    assert text(tree, "vllm/envs.py") == "RUNNER = 'v3'\n"


def test_a_patch_and_its_opposite_leave_what_was_there(tree: LinkTree) -> None:
    opposite = RUNNER.replace("v2", "v0").replace("v1", "v2").replace("v0", "v1")

    assert apply(tree, RUNNER, opposite).changed == {"vllm/envs.py"}
    assert text(tree, "vllm/envs.py") == FILES["vllm/envs.py"]


@pytest.mark.parametrize(
    "written",
    [
        RUNNER,
        RUNNER.replace("a/vllm", "vllm").replace("b/vllm", "vllm"),
        RUNNER.replace("a/vllm", "vllm-0.32.0/vllm").replace("b/vllm", "mine/vllm"),
        RUNNER.replace("vllm/envs.py\n+++", "vllm/envs.py.orig\n+++"),
        RUNNER.replace("envs.py\n", "envs.py\t2026-12-01 10:00:00.000000000 +0000\n"),
        RUNNER.replace("\n", "\r\n"),
        RUNNER.removesuffix("\n"),
        f"From 123 Mon Sep 17\nSubject: [PATCH] runner\n\n---\n vllm/envs.py | 2 +-\n\n{RUNNER}-- \n2.39.5\n\n",
        f"Index: vllm/envs.py\n=====\n{RUNNER}",
    ],
    ids=["git", "no prefix", "folders", "orig", "times", "crlf", "no newline", "mail", "svn"],
)
def test_a_diff_is_read_however_it_was_written(tree: LinkTree, written: str) -> None:
    assert apply(tree, written).changed == {"vllm/envs.py"}
    assert text(tree, "vllm/envs.py") == "RUNNER = 'v2'\n"


def test_a_file_with_crlf_keeps_it(tree: LinkTree) -> None:
    (tree.root / "vllm/envs.py").write_bytes(b"RUNNER = 'v1'\r\n")

    apply(tree, RUNNER.replace("'v1'", "'v1'\r").replace("'v2'", "'v2'\r"))

    assert text(tree, "vllm/envs.py") == "RUNNER = 'v2'\r\n"


def test_a_file_without_a_newline_at_its_end_is_patched(tree: LinkTree) -> None:
    (tree.root / "vllm/envs.py").write_text("RUNNER = 'v1'")
    lines = RUNNER.replace("-RUNNER = 'v1'\n", "-RUNNER = 'v1'\n\\ No newline at end of file\n")

    apply(tree, lines)

    assert text(tree, "vllm/envs.py") == "RUNNER = 'v2'\n"


def test_a_hunk_that_has_moved_still_applies(tree: LinkTree) -> None:
    (tree.root / "vllm/platforms/cpu.py").write_text("# one\n# more\n" + PLATFORM)

    apply(tree, STRICT)

    assert "raise ValueError(asked)" in text(tree, "vllm/platforms/cpu.py")


def test_what_lies_outside_the_package_is_skipped_and_said(tree: LinkTree) -> None:
    assert apply(tree, TESTS + STRICT).skipped == ("tests/test_cpu.py",)


def test_inside_a_repository_that_ignores_the_folder_a_patch_is_applied_too(
    tree: LinkTree,
) -> None:
    subprocess.run(["git", "init", "-q", tree.site.parent], check=True)
    (tree.site.parent / ".gitignore").write_text("*\n")

    apply(tree, STRICT)

    assert "raise ValueError(asked)" in text(tree, "vllm/platforms/cpu.py")


def test_settings_of_the_user_s_git_change_nothing(
    tree: LinkTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[apply]\n\twhitespace = fix\n")
    monkeypatch.setenv("HOME", str(tmp_path))

    apply(tree, RUNNER.replace("'v2'", "'v2'  "))

    assert text(tree, "vllm/envs.py") == "RUNNER = 'v2'  \n"


def test_a_git_that_does_nothing_and_says_all_is_well_is_not_believed(
    tree: LinkTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    with pytest.raises(BuildNodeError, match=r"1\.diff and yet it is not in .*envs\.py"):
        apply(tree, RUNNER)


def test_without_git_the_message_says_so(tree: LinkTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(BuildNodeError, match="git is missing"):
        apply(tree, RUNNER)


def test_a_hunk_that_does_not_fit_is_shown_with_what_is_there_instead(tree: LinkTree) -> None:
    theirs = STRICT.replace('-    return "CPU_ATTN"', "-    return FALLBACK")

    assert refusal(tree, theirs) == snapshot("""\
the patches of the build can't be applied:
  1.diff: vllm/platforms/cpu.py: hunk 1 (line 3) does not fit, line 6
      expected:     return FALLBACK
      found:        return "CPU_ATTN"
  make them against vLLM 0.32.0, or take them out of the build\
""")


def test_all_mistakes_of_all_patches_come_in_one_message(tree: LinkTree) -> None:
    lost = RUNNER.replace("vllm/envs.py", "vllm/gone.py")

    assert refusal(tree, RUNNER.replace("v1", "v0") + lost, STRICT, CREATES, CREATES) == snapshot("""\
the patches of the build can't be applied:
  1.diff: vllm/envs.py: hunk 1 (line 1) does not fit, line 1
      expected: RUNNER = 'v0'
      found:    RUNNER = 'v1'
  1.diff: vllm/gone.py: this vLLM (0.32.0) has no such file
  4.diff: is in already, by vLLM 0.32.0 itself or by a patch above
  make them against vLLM 0.32.0, or take them out of the build\
""")


def test_a_patch_on_top_of_one_that_failed_is_not_blamed(tree: LinkTree) -> None:
    assert refusal(tree, RUNNER.replace("v1", "v0"), RUNNER).splitlines()[-2] == snapshot(
        "  2.diff: not tried, it changes files of a patch above"
    )


def test_a_patch_that_is_in_already_is_refused_as_such(tree: LinkTree) -> None:
    assert refusal(tree, RUNNER, RUNNER) == snapshot("""\
the patches of the build can't be applied:
  2.diff: is in already, by vLLM 0.32.0 itself or by a patch above
  make them against vLLM 0.32.0, or take them out of the build\
""")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "applies to nothing"),
        ("just words\n", "applies to nothing"),
        (TESTS, "applies to nothing"),
        (
            "diff --git a/vllm/envs.py b/vllm/envs.py\nold mode 100644\nnew mode 100755\n",
            "applies to nothing",
        ),
        (NATIVE, "changes native code (csrc/ops.cu)"),
        (STRICT + NATIVE, "changes native code (csrc/ops.cu)"),
        (RUNNER.replace("vllm/envs.py", "setup.py"), "changes native code (setup.py)"),
        (RUNNER.replace("a/vllm/envs.py", "a/vllm/../../x"), "leads elsewhere"),
        (RUNNER.replace("a/vllm/envs.py", "/etc/vllm/envs.py"), "leads elsewhere"),
        (RENAMES.replace("b/vllm/settings.py", "b/vllm/../../x"), "leads elsewhere"),
        (RENAMES.replace("b/vllm/settings.py", "b/docs/settings.py"), "into or out of vllm/"),
        (RENAMES.replace("rename", "copy"), "copies a file"),
        (CREATES.replace("100644", "120000"), "a symbolic link or a submodule"),
        (
            "diff --git a/vllm/_C.so b/vllm/_C.so\nBinary files a/vllm/_C.so and b/vllm/_C.so differ\n",
            "a binary file",
        ),
        (RUNNER + RUNNER.replace("a/", "").replace("b/", ""), "with and without a prefix"),
        ("diff --cc vllm/envs.py\n", "the diff of a merge"),
        (RUNNER.replace("+RUNNER = 'v2'\n", ""), "other lines than its header counts"),
        (RUNNER + "+MORE = 1\n", "other lines than its header counts"),
        (RUNNER.replace("@@ -1 +1 @@", "@@ -1 @@"), "can't be read"),
        ('diff --git "a/vllm/\\303.py" "b/vllm/\\303.py"\nnew file mode 100644\n', "can't be read"),
    ],
)
def test_a_patch_that_can_t_be_carried_out_is_refused_before_anything_is_touched(
    tree: LinkTree, written: str, said: str
) -> None:
    assert said in refusal(tree, written)
    assert list(tree.entries()) == []


def test_a_native_file_inside_the_package_is_compiled_from_there_and_may_be_patched(
    tree: LinkTree,
) -> None:
    fake_vllm.write(tree.root, {"vllm/jit.cpp": "int x;\n"})

    apply(tree, NATIVE.replace("csrc/ops.cu", "vllm/jit.cpp"))

    assert text(tree, "vllm/jit.cpp") == "int y;\n"


def test_a_line_that_looks_like_a_header_within_a_hunk_is_content() -> None:
    content = "--- a/vllm/x.py\n+++ b/vllm/x.py\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n \n"

    (file,) = diffs.parse(content).files

    assert file.hunks[0].before == ("-- old", "")


def test_without_patches_nothing_is_applied(tree: LinkTree) -> None:
    assert patches.apply(BuildSpec(name="b", release="0.32.0"), tree, "0.32.0") == Applied()
