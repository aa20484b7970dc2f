"""What stands around a line and is not the program's: container runtimes, launchers and collectors put it there."""
