"""The vocabulary of predefined templates: what the field prints, declared family by family."""
