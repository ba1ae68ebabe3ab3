package deliver

import (
	"context"

	"parley/app/steps"
	"parley/desk"
	"parley/store"
)

// Forget deletes the old deliveries of a workspace's webhooks. Of removed webhooks it
// deletes all deliveries, because the process that removed the webhook may have ended
// before it had deleted them.
func (a *Service) Forget(ctx context.Context, ws desk.ID) error {
	list, err := a.Store.DeliveredWebhooks(ctx, ws)
	if err != nil {
		return err
	}
	s, err := a.Store.Settings(ctx, ws) // read after the list: a webhook that the settings lack was removed
	if err != nil {
		return err
	}
	before, err := a.oldBefore(ctx)
	if err != nil {
		return err
	}
	for _, id := range list {
		forget := a.forgetRemoved(ctx, store.WebhookRef{Workspace: ws, ID: id})
		if s.Webhook(id) != nil {
			forget = func(limit int) (int, error) {
				return a.Store.ForgetDeliveries(ctx, ws, id, before, desk.MaxDeliveries, limit)
			}
		}
		if err := steps.InGroups(ctx, steps.Group, forget); err != nil {
			return err
		}
	}
	return nil
}

// oldBefore is the time before which a settled delivery is old.
func (a *Service) oldBefore(ctx context.Context) (desk.Time, error) {
	now, _, err := a.Store.Clock(ctx)
	return desk.Ago(desk.KeepDelivery, now, a.now()), err
}

// forgetRemoved is a step that deletes deliveries of a webhook that was removed.
func (a *Service) forgetRemoved(ctx context.Context, ref store.WebhookRef) func(limit int) (int, error) {
	return func(limit int) (int, error) { return a.Store.ForgetDeliveries(ctx, ref.Workspace, ref.ID, 0, 0, limit) }
}

// dropDeliveries deletes the deliveries of a webhook that was removed. If it fails, Forget
// deletes the rest.
func (a *Service) dropDeliveries(ctx context.Context, ref store.WebhookRef) {
	if err := steps.InGroups(ctx, steps.Group, a.forgetRemoved(ctx, ref)); err != nil {
		a.Log.WarnContext(ctx, "the deliveries of a removed webhook are left", "workspace_id", ref.Workspace, "webhook_id", ref.ID, "err", err)
	}
}
