package accelerator

import "strings"

// The label keys by which nodes say which accelerator they have.
const (
	KeySkyPilot  = "skypilot.co/accelerator"              // set by hand or by SkyPilot's labelling script; lower case
	KeyGKE       = "cloud.google.com/gke-accelerator"     // GKE's GPU node pools
	KeyKarpenter = "karpenter.k8s.aws/instance-gpu-name"  // Karpenter on EKS
	KeyGFD       = "nvidia.com/gpu.product"               // NVIDIA's GPU feature discovery: the driver's name of the product
	KeyCoreWeave = "gpu.nvidia.com/class"                 // CoreWeave
	KeyEKS       = "k8s.amazonaws.com/accelerator"        // EKS with the cluster autoscaler
	KeyAKS       = "node.kubernetes.io/instance-type"     // the VM size, on AKS: its own label names no model of GPU
	KeyGKETPU    = "cloud.google.com/gke-tpu-accelerator" // GKE's TPU node pools
	TopologyKey  = "cloud.google.com/gke-tpu-topology"    // how the chips of a TPU node are arranged
	KeyAMD       = "amd.com/gpu.product-name"             // AMD's node labeller
	resourceTPU  = "google.com/tpu"
	resourceAMD  = "amd.com/gpu"
)

// builtin is the table. Sources: SkyPilot's sky/provision/kubernetes/utils.py for its own, GKE's, Karpenter's and
// CoreWeave's labels; GKE's documentation for H200, whose name SkyPilot's rule gets wrong; nodes seen with GPU feature
// discovery for its product names, of which one accelerator has several; Azure's documentation of VM sizes, without those
// that have a part of a GPU or are retired.
func builtin() map[string]Definition {
	return map[string]Definition{
		"K80":       nvidia("K80").gke("nvidia-tesla-k80").gfd("Tesla-K80"),
		"P4":        nvidia("P4").gke("nvidia-tesla-p4").gfd("Tesla-P4"),
		"P100":      nvidia("P100").gke("nvidia-tesla-p100").gfd("Tesla-P100-PCIE-12GB", "Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB"),
		"V100":      nvidia("V100").gke("nvidia-tesla-v100").gfd("Tesla-V100-PCIE-16GB", "Tesla-V100-SXM2-16GB").eks("nvidia-tesla-v100"),
		"V100-32GB": nvidia("V100-32GB").gfd("Tesla-V100-PCIE-32GB", "Tesla-V100-SXM2-32GB", "Tesla-V100-SXM3-32GB"),
		"M60":       nvidia("M60").gfd("Tesla-M60").eks("nvidia-tesla-m60"),
		"T4": nvidia("T4").gke("nvidia-tesla-t4").gfd("Tesla-T4").eks("nvidia-tesla-t4").
			aks("Standard_NC4as_T4_v3", "Standard_NC8as_T4_v3", "Standard_NC16as_T4_v3", "Standard_NC64as_T4_v3"),
		"T4g":  nvidia("T4g").gfd("NVIDIA-T4G").eks("nvidia-tesla-t4g"),
		"L4":   nvidia("L4").gke("nvidia-l4").gfd("NVIDIA-L4").eks("nvidia-l4"),
		"L40":  nvidia("L40").gfd("NVIDIA-L40"),
		"L40S": nvidia("L40S").gfd("NVIDIA-L40S").eks("nvidia-l40s"),
		"A10": nvidia("A10").gfd("NVIDIA-A10").
			aks("Standard_NV36ads_A10_v5", "Standard_NV36adms_A10_v5", "Standard_NV72ads_A10_v5"),
		"A10G":         nvidia("A10G").gfd("NVIDIA-A10G").eks("nvidia-a10g"),
		"A40":          nvidia("A40").gfd("NVIDIA-A40"),
		"RTXA6000":     nvidia("RTXA6000").gfd("NVIDIA-RTX-A6000").coreWeave("RTX_A6000"),
		"RTX-PRO-6000": nvidia("RTX-PRO-6000").gke("nvidia-rtx-pro-6000").gfd("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"),
		"A100": nvidia("A100").gke("nvidia-tesla-a100").gfd("NVIDIA-A100-PCIE-40GB", "NVIDIA-A100-SXM4-40GB").eks("nvidia-tesla-a100").
			aks("Standard_ND96asr_v4"),
		"A100-80GB": nvidia("A100-80GB").gke("nvidia-a100-80gb").gfd("NVIDIA-A100-80GB-PCIe", "NVIDIA-A100-SXM4-80GB").coreWeave("A100_NVLINK_80GB").
			aks("Standard_NC24ads_A100_v4", "Standard_NC48ads_A100_v4", "Standard_NC96ads_A100_v4", "Standard_ND96amsr_A100_v4"),
		"GH200": nvidia("GH200").gfd("NVIDIA-GH200-480GB", "NVIDIA-GH200-96GB-HBM3"),
		"H100": nvidia("H100").gke("nvidia-h100-80gb").gfd("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-NVL", "NVIDIA-H100-PCIe").eks("nvidia-h100").
			aks("Standard_NC40ads_H100_v5", "Standard_NC80adis_H100_v5", "Standard_ND96isr_H100_v5"),
		"H100-MEGA-80GB": nvidia("H100-MEGA-80GB").gke("nvidia-h100-mega-80gb").gfd("NVIDIA-H100-80GB-HBM3"),
		"H200": nvidia("H200").gke("nvidia-h200-141gb").gfd("NVIDIA-H200").
			aks("Standard_ND96isr_H200_v5"),
		"B200": nvidia("B200").gke("nvidia-b200").gfd("NVIDIA-B200"),
		"GB200": nvidia("GB200").gke("nvidia-gb200").gfd("NVIDIA-GB200").
			aks("Standard_ND128isr_NDR_GB200_v6"),
		"MI300X": {Resource: resourceAMD, Labels: map[string][]string{
			KeySkyPilot: {"mi300x"}, KeyAMD: {"AMD_Instinct_MI300X_OAM", "AMD_Instinct_MI300X_VF"},
			KeyAKS: {"Standard_ND96isr_MI300X_v5"},
		}},
		"tpu-v4-podslice":      tpu(map[int]string{4: "2x2x1"}, "tpu-v4-podslice"),
		"tpu-v5-lite-device":   tpu(lite(), "tpu-v5-lite-device"),
		"tpu-v5-lite-podslice": tpu(lite(), "tpu-v5-lite-podslice"),
		"tpu-v5e":              tpu(lite(), "tpu-v5-lite-device", "tpu-v5-lite-podslice"),
		"tpu-v5p-slice":        tpu(map[int]string{4: "2x2x1"}, "tpu-v5p-slice"),
		"tpu-v6e-slice":        tpu(lite(), "tpu-v6e-slice"),
	}
}

// lite are the arrangements of TPU v5e and v6e on one host.
func lite() map[int]string { return map[int]string{1: "1x1", 4: "2x2", 8: "2x4"} }

// nvidia is a GPU whose name alone makes three of its labels.
func nvidia(name string) Definition {
	lower := strings.ToLower(name)
	return Definition{Resource: DefaultResource, Labels: map[string][]string{
		KeySkyPilot: {lower}, KeyKarpenter: {lower}, KeyCoreWeave: {strings.ToUpper(name)},
	}}
}

func tpu(topologies map[int]string, values ...string) Definition {
	return Definition{Resource: resourceTPU, Labels: map[string][]string{KeyGKETPU: values}, Topologies: topologies}
}

func (d Definition) gke(values ...string) Definition       { return d.with(KeyGKE, values) }
func (d Definition) gfd(values ...string) Definition       { return d.with(KeyGFD, values) }
func (d Definition) eks(values ...string) Definition       { return d.with(KeyEKS, values) }
func (d Definition) aks(values ...string) Definition       { return d.with(KeyAKS, values) }
func (d Definition) coreWeave(values ...string) Definition { return d.with(KeyCoreWeave, values) }

func (d Definition) with(key string, values []string) Definition {
	d.Labels[key] = append(d.Labels[key], values...)
	return d
}
