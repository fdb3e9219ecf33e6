package checkpointage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// clients are of three API groups. Those of Jobs and pods ask for the objects' metadata only.
type clients struct {
	kueue, batch, core rest.Interface
	parameters         runtime.ParameterCodec
}

// Accept headers with which the API server leaves out spec and status. It converts each object of a watch into the kind
// that is named: a list there would end the watch at its first event.
const (
	metadataOfList  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	metadataOfWatch = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

func dial(config *rest.Config) (clients, error) {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Version: "v1"}
	batch := schema.GroupVersion{Group: "batch", Version: "v1"}
	metav1.AddToGroupVersion(scheme, version)
	metav1.AddToGroupVersion(scheme, batch)
	if err := kueue.AddToScheme(scheme); err != nil {
		return clients{}, err
	}
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return clients{}, err
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	c := clients{parameters: runtime.NewParameterCodec(scheme)}
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		return clients{}, err
	}
	for _, g := range []struct {
		into    *rest.Interface
		version schema.GroupVersion
		path    string
		accept  string
	}{
		{&c.kueue, kueue.SchemeGroupVersion, "/apis", ""},
		{&c.batch, batch, "/apis", metadataOfList},
		{&c.core, version, "/api", metadataOfList},
	} {
		of := rest.CopyConfig(config)
		of.GroupVersion, of.APIPath, of.NegotiatedSerializer = &g.version, g.path, codecs
		of.ContentType, of.AcceptContentTypes = runtime.ContentTypeJSON, g.accept
		if *g.into, err = rest.RESTClientForConfigAndClient(of, web); err != nil {
			return clients{}, err
		}
	}
	return c, nil
}
