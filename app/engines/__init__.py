"""The clusters that run attempts, behind one small port."""
