"""What the words of a question mean in a database: its tables, columns and values, its conditions, figures and groups; without a model."""
