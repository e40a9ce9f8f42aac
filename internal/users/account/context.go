package account

import "context"

type contextKey struct{}

// InTenant returns a context whose S3 requests are counted for this tenant.
func InTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, contextKey{}, tenant)
}

// TenantOf returns the tenant set by [InTenant], or an empty string.
func TenantOf(ctx context.Context) string {
	tenant, _ := ctx.Value(contextKey{}).(string)
	return tenant
}
