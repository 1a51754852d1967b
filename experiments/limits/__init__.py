"""How far regret is from what nobody can beat."""
