"""Installing, removing and checking an installation (cold side)."""
