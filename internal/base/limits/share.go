package limits

// Share returns how many slots one user may have while others use some of them: three quarters of the slots that the
// others leave, but at least one. Some slots are therefore left for the next user.
func Share(slots, others int) int { return max(1, (slots-others)*3/4) }
