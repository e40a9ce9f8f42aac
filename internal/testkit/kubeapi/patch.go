package kubeapi

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// patch changes an object. An apply also creates it.
func (h *handler) patch(c *call, body []byte) (*object, error) {
	media, _, err := mime.ParseMediaType(c.http.Header.Get("Content-Type"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	apply := types.PatchType(media) == types.ApplyPatchType
	manager := c.query.Get("fieldManager")
	if apply {
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if manager == "" {
			return nil, apierrors.NewBadRequest("fieldManager is required for apply patch")
		}
	}
	manager += " " + c.http.URL.Path
	return h.store.put(c.key(), func(old map[string]any) (map[string]any, error) {
		if old == nil && (!apply || c.Subresource != "") {
			return nil, apierrors.NewNotFound(c.kind.resource(), c.Name)
		}
		if old == nil {
			old = map[string]any{}
			delete(h.store.applied, manager)
		}
		version, uid := metadata(old)["resourceVersion"], metadata(old)["uid"]
		raw := encode(old)
		var patched []byte
		switch types.PatchType(media) {
		case types.MergePatchType:
			patched, err = jsonpatch.MergePatch(raw, body)
		case types.JSONPatchType:
			patched, err = jsonPatch(raw, body)
		case types.StrategicMergePatchType:
			if c.kind.custom {
				return nil, unsupported(media)
			}
			patched, err = strategicpatch.StrategicMergePatch(raw, body, c.kind.model)
		case types.ApplyPatchType:
			patched, err = threeWay(h.store.applied[manager], body, raw)
			h.store.applied[manager] = body
		default:
			return nil, unsupported(media)
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		next, err := decode(patched)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if version == nil { // created
			return c.merged(nil, next), nil
		}
		metadata(old)["resourceVersion"], metadata(old)["uid"] = version, uid
		return c.merged(old, next), nil
	})
}

// jsonPatch applies a JSON patch.
func jsonPatch(raw, body []byte) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	return patch.Apply(raw)
}

// threeWay applies a configuration: it removes the fields that the previous configuration of this manager had and this
// one has not.
func threeWay(previous, applied, current []byte) ([]byte, error) {
	if previous == nil {
		previous = []byte("{}")
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(previous, applied, current)
	if err != nil {
		return nil, err
	}
	if !json.Valid(patch) {
		return nil, errors.New("invalid patch")
	}
	return jsonpatch.MergePatch(current, patch)
}

// unsupported returns the error for a type of patch.
func unsupported(media string) error {
	return apierrors.NewGenericServerResponse(
		http.StatusUnsupportedMediaType, "patch", schema.GroupResource{}, "", "unsupported patch type "+media, 0, true)
}

func tooLarge() metav1.StatusCause {
	return metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}
}
