// Command handler is a webhook as controller-runtime has them written: its server, a Handler that decodes by the scheme,
// and a patch that is the difference between what came and what the changed object is marshalled to.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/go-logr/logr"

	"example.invalid/webhooks"
)

type handler struct {
	decoder    admission.Decoder
	namespaces webhooks.Namespaces
	decide     func(handler, admission.Request, runtime.Object) admission.Response
}

func main() {
	flags := webhooks.Parse()
	ctrl.SetLogger(logr.Discard())
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: flags.Port, CertDir: flags.Certificates,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.MinVersion = tls.VersionTLS13 }},
	})
	decoder := admission.NewDecoder(clientgoscheme.Scheme)
	server.Register("/validate", &webhook.Admission{Handler: handler{decoder, flags.Namespaces, validate}})
	server.Register("/mutate", &webhook.Admission{Handler: handler{decoder, flags.Namespaces, mutate}})
	log.Fatal(server.Start(context.Background()))
}

func (handler handler) Handle(_ context.Context, request admission.Request) admission.Response {
	object := webhooks.Empty(request.Kind.Kind)
	if object == nil || !handler.namespaces.InForce(request.Namespace) {
		return admission.Allowed("")
	}
	if err := handler.decoder.Decode(request, object); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return handler.decide(handler, request, object)
}

func validate(handler handler, request admission.Request, object runtime.Object) admission.Response {
	found := webhooks.Validate(webhooks.Of(object))
	if len(found) > 0 && request.Operation == admissionv1.Update {
		old := webhooks.Empty(request.Kind.Kind)
		if err := handler.decoder.DecodeRaw(request.OldObject, old); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		found = webhooks.Worse(found, webhooks.Validate(webhooks.Of(old)))
	}
	if len(found) > 0 {
		return admission.Denied(webhooks.Message(found))
	}
	return admission.Allowed("")
}

func mutate(_ handler, request admission.Request, object runtime.Object) admission.Response {
	webhooks.Default(webhooks.Of(object))
	marshaled, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, marshaled)
}
