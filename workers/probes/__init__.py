"""What each probe tries: a small real case, compared with a known answer."""
