// What a screen reader is told although nothing got the focus.

export function speak(text) {
  document.getElementById("spoken").textContent = text;
}
