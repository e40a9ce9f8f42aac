// The role of the administrator, which decides what the page offers. The server checks it again.

const ranks = ['viewer', 'operator', 'administrator']

let rank = 0

// assume sets the role.
export const assume = role => { rank = ranks.indexOf(role) }

// may reports whether the administrator has this role or a higher one.
export const may = role => rank >= ranks.indexOf(role)
