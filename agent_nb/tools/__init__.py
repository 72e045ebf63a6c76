"""What an agent can do: `decorator` makes tools of functions, `toolset` collects them, `runner` runs them, `approval` asks first."""
