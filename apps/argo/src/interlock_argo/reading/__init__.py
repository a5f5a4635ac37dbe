"""What Argo reads: pages, files, and where it searches for them."""
