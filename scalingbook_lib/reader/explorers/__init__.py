"""What is an explorer? Controls, and a pure view of them."""
