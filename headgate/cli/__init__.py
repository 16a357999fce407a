"""The command line; joins the parts."""
