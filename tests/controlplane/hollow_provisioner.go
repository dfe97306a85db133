package main

import (
	"context"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	storageutil "k8s.io/kubernetes/pkg/apis/storage/util"
)

// Volumes of every StorageClass with this provisioner exist at once and hold nothing; `hollow` is the default class.
const hollowVolumes = "hollow.gatewright.io/volumes"

// hollowProvisioner plays a storage driver: a volume for each claim, as large as the claim asks, gone with it.
type hollowProvisioner struct {
	client  kubernetes.Interface
	claims  listers.PersistentVolumeClaimLister
	volumes listers.PersistentVolumeLister
	queue   queue
}

func newHollowProvisioner(client kubernetes.Interface, factory informers.SharedInformerFactory) (*hollowProvisioner, error) {
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	provisioner := &hollowProvisioner{client: client, claims: claims.Lister(), volumes: volumes.Lister(), queue: newQueue()}
	enqueue := func(object any) {
		if object, ok := object.(meta.Object); ok {
			provisioner.queue.Add(cache.MetaObjectToName(object))
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, err
		}
	}
	return provisioner, nil
}

// createClass makes the default StorageClass, which lets claims grow.
func (p *hollowProvisioner) createClass(ctx context.Context) error {
	grows, reclaim, binding := true, core.PersistentVolumeReclaimDelete, storage.VolumeBindingImmediate
	class := &storage.StorageClass{
		ObjectMeta:           meta.ObjectMeta{Name: "hollow", Annotations: map[string]string{storageutil.IsDefaultStorageClassAnnotation: "true"}},
		Provisioner:          hollowVolumes,
		ReclaimPolicy:        &reclaim,
		AllowVolumeExpansion: &grows,
		VolumeBindingMode:    &binding,
	}
	_, err := p.client.StorageV1().StorageClasses().Create(ctx, class, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// sync looks at a claim or, where the name has no namespace, at a volume.
func (p *hollowProvisioner) sync(ctx context.Context, name cache.ObjectName) error {
	var err error
	if name.Namespace == "" {
		err = p.syncVolume(ctx, name.Name)
	} else {
		err = p.syncClaim(ctx, name)
	}
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// syncClaim makes the volume of a claim that asks us for one, and lets it grow with what the claim asks for.
func (p *hollowProvisioner) syncClaim(ctx context.Context, name cache.ObjectName) error {
	claim, err := p.claims.PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if err != nil || claim.DeletionTimestamp != nil || claim.Annotations[storagehelpers.AnnStorageProvisioner] != hollowVolumes {
		return err
	}
	asked := claim.Spec.Resources.Requests[core.ResourceStorage]
	if claim.Spec.VolumeName == "" {
		class, err := p.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, meta.GetOptions{})
		if err != nil {
			return err
		}
		_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, hollowVolume(claim, class), meta.CreateOptions{})
		return err
	}
	given := claim.Status.Capacity[core.ResourceStorage]
	if claim.Status.Phase != core.ClaimBound || asked.Cmp(given) <= 0 {
		return nil
	}
	volume, err := p.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	volume = volume.DeepCopy()
	volume.Spec.Capacity[core.ResourceStorage] = asked
	if _, err := p.client.CoreV1().PersistentVolumes().Update(ctx, volume, meta.UpdateOptions{}); err != nil {
		return err
	}
	claim = claim.DeepCopy()
	claim.Status.Capacity[core.ResourceStorage] = asked
	claim.Status.Conditions = nil // nothing is resizing, and no file system is left to grow
	_, err = p.client.CoreV1().PersistentVolumeClaims(name.Namespace).UpdateStatus(ctx, claim, meta.UpdateOptions{})
	return err
}

// syncVolume removes a volume whose claim has gone, unless it is to be retained.
func (p *hollowProvisioner) syncVolume(ctx context.Context, name string) error {
	volume, err := p.volumes.Get(name)
	if err != nil || volume.DeletionTimestamp != nil || volume.Annotations[storagehelpers.AnnDynamicallyProvisioned] != hollowVolumes {
		return err
	}
	if volume.Status.Phase != core.VolumeReleased || volume.Spec.PersistentVolumeReclaimPolicy != core.PersistentVolumeReclaimDelete {
		return nil
	}
	return p.client.CoreV1().PersistentVolumes().Delete(ctx, name, meta.DeleteOptions{})
}

func hollowVolume(claim *core.PersistentVolumeClaim, class *storage.StorageClass) *core.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{storagehelpers.AnnDynamicallyProvisioned: hollowVolumes}},
		Spec: core.PersistentVolumeSpec{
			Capacity:                      core.ResourceList{core.ResourceStorage: claim.Spec.Resources.Requests[core.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			ClaimRef: &core.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: core.PersistentVolumeSource{HostPath: &core.HostPathVolumeSource{Path: "/hollow/" + name}},
		},
	}
}
