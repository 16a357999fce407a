"""A plugin file that cannot be imported: the worker must say so and go on."""

raise RuntimeError("this plugin is broken on purpose")
