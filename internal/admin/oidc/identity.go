package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// maxSubject is the longest subject identifier (OpenID Connect Core 1.0, section 2).
	maxSubject = 255
	// maxName limits the length of a name. A longer name is not shown.
	maxName = 128
)

// An Identity is an administrator as the provider describes it.
type Identity struct {
	// Name is unique: it ends with the subject identifier.
	Name    string
	Subject string
	// Role is empty if no group of the administrator has a role.
	Role config.AdminRole
	// Groups are empty if the provider did not send any.
	Groups []string

	IDToken, RefreshToken string // secrets
}

// identity verifies the tokens of a response. Claims that the ID token lacks come from the userinfo endpoint. The
// argument of check is nil without an ID token.
func (c *Client) identity(
	ctx context.Context, p *provider, token *oauth2.Token, check func(*oidc.IDToken) error,
) (*Identity, error) {
	claims := map[string]any{}
	raw, _ := token.Extra("id_token").(string)
	var id *oidc.IDToken
	var err error
	if raw != "" {
		if id, err = p.idToken(ctx, c.cfg.Issuer, raw); err != nil {
			return nil, err
		}
		if err := id.Claims(&claims); err != nil {
			return nil, fmt.Errorf("invalid ID token: %w", err)
		}
		if authorized, ok := claims["azp"]; ok && authorized != c.cfg.ClientID || !ok && len(id.Audience) > 1 {
			return nil, fmt.Errorf("the ID token was issued to another client: %v", authorized)
		}
		if id.AccessTokenHash != "" {
			if err := id.VerifyAccessToken(token.AccessToken); err != nil {
				return nil, err
			}
		}
	}
	if err := check(id); err != nil {
		return nil, err
	}
	if err := c.complete(ctx, p, token, claims); err != nil {
		return nil, err
	}
	subject, _ := claims["sub"].(string)
	if subject == "" || len(subject) > maxSubject || !printable(subject) {
		return nil, errors.New("the claim sub is missing or invalid")
	}
	groups := texts(claims[c.groupsClaim()])
	if c.groupsClaim() == email && !isVerified(claims) {
		groups = nil
	}
	return &Identity{
		Name: c.name(claims, subject), Subject: subject, Groups: groups, Role: c.cfg.RoleOf(groups),
		IDToken: raw, RefreshToken: token.RefreshToken,
	}, nil
}

// complete adds claims from the userinfo endpoint if the groups or the name are missing.
func (c *Client) complete(ctx context.Context, p *provider, token *oauth2.Token, claims map[string]any) error {
	_, hasGroups := claims[c.groupsClaim()]
	_, hasName := claims[c.nameClaim()]
	if hasGroups && hasName {
		return nil
	}
	if p.UserInfoEndpoint() == "" {
		if claims["sub"] == nil {
			return errors.New("the response has no ID token, and the provider has no userinfo endpoint")
		}
		return nil
	}
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return fmt.Errorf("userinfo: %w", web.WithoutURL(err))
	}
	if subject, ok := claims["sub"]; ok && subject != info.Subject {
		return errors.New("the response of the userinfo endpoint belongs to somebody else")
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return fmt.Errorf("userinfo: %w", err)
	}
	for key, v := range more {
		if _, ok := claims[key]; !ok {
			claims[key] = v
		}
	}
	return nil
}

func (c *Client) groupsClaim() string { return cmp.Or(c.cfg.GroupsClaim, "groups") }

func (c *Client) nameClaim() string { return cmp.Or(c.cfg.NameClaim, "preferred_username") }

// name returns the name of an administrator for logs. Other people may have or choose the same name, so it contains the
// subject identifier, too.
func (c *Client) name(claims map[string]any, subject string) string {
	name, _ := claims[c.nameClaim()].(string)
	if c.nameClaim() == email && !isVerified(claims) {
		name = ""
	}
	if name == "" || name == subject || len(name) > maxName || !printable(name) || strings.ContainsAny(name, "()") {
		return "(" + subject + ")"
	}
	return name + " (" + subject + ")"
}

// email is the claim with an address, which anybody could have entered if it is not verified.
const email = "email"

// isVerified reports whether the provider has verified the address. Some providers send a string.
func isVerified(claims map[string]any) bool {
	return claims["email_verified"] == true || claims["email_verified"] == "true"
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// texts returns the strings in a claim, which some providers send as a single string.
func texts(claim any) (all []string) {
	switch v := claim.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			if text, ok := one.(string); ok {
				all = append(all, text)
			}
		}
	}
	return all
}
