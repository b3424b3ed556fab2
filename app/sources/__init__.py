"""Sources: packages of users' own code, uploaded once and importable in the ranks of the jobs that name them."""
