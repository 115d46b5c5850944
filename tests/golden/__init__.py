"""What people read of dptext, word for word: to change it is a decision, never an accident."""
