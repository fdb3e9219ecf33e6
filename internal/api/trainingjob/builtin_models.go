package trainingjob

// BuiltInModels lists the models that a job may name instead of giving a file, in alphabetical order. Their files are
// in internal/trainer/ml/zoo, whose tests hold the two lists equal.
func BuiltInModels() []string {
	return []string{"census_dnn", "cifar10", "deepfm", "iris", "mnist", "resnet", "wide_deep"}
}
