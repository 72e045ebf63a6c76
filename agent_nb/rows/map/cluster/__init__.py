"""Rows asked beyond this process: what travels, who asks it, and what comes back."""
