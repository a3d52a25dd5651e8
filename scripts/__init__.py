"""What is run by hand and by CI: shell scripts, and in Python what makes the reference."""
