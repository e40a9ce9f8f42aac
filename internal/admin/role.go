package admin

import (
	"net/http"
)

// A Role says what a login may do in the API. A role includes the rights of all lower roles.
type Role int

// The roles. The zero value has no rights.
const (
	Viewer        Role = iota + 1 // reads everything except secrets
	Operator                      // ends sessions, bans clients, debugs them and deletes uploads
	Administrator                 // changes users
)

// roleNames has the names of the roles in the configuration and in the API.
func roleNames() map[Role]string {
	return map[Role]string{Viewer: "viewer", Operator: "operator", Administrator: "administrator"}
}

// String returns the name of the role.
func (r Role) String() string { return roleNames()[r] }

// MarshalText implements [encoding.TextMarshaler].
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Values returns the names of all roles, for the OpenAPI document.
func (Role) Values() []string {
	return []string{Viewer.String(), Operator.String(), Administrator.String()}
}

// require returns an error with status 403 if the role of the request is lower than least.
func require(r *http.Request, least Role) error {
	switch has := roleOf(r); {
	case has >= least:
		return nil
	case has == 0:
		return &Error{http.StatusForbidden, "this login has no role: it needs the role " + least.String()}
	default:
		return &Error{http.StatusForbidden,
			"the role " + has.String() + " may not do this: it needs the role " + least.String()}
	}
}
