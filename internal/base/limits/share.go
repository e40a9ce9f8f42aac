package limits

// Share is how many of so many slots one user of them may have while others have some: three quarters of what these
// leave, and one at least. So something is left for the next user.
func Share(slots, others int) int { return max(1, (slots-others)*3/4) }
