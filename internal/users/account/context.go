package account

import "context"

type contextKey struct{}

// InTenant returns a context whose requests to S3 count for a tenant.
func InTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, contextKey{}, tenant)
}

// TenantOf returns the tenant of [InTenant], empty without one.
func TenantOf(ctx context.Context) string {
	tenant, _ := ctx.Value(contextKey{}).(string)
	return tenant
}
