"""What does the compiler make of a program? For a TPU slice that is not here, or for the devices that are."""
