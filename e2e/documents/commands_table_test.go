package documents

// What is behind a block of commands: `runs`, or a text that begins with the test that runs the same, or with the reason
// why no test does.
const (
	runs = "" // TestTheCommandsThatNeedNoClusterRunAsPrinted

	onKind          = "TestTheCommandsOfTheQuickstartWorkAsPrinted runs them on kind (make e2e-kind)"
	tutorial        = "TestScenariosOnTheEmbeddedCluster takes the tutorial's steps on the same configuration, and TestTheSessionOfTheReadmeIsRecordedOnACluster types some"
	chaos           = "TestScenariosOnTheEmbeddedCluster runs its failures"
	sameModel       = "TestScenariosOnTheEmbeddedCluster compares the model with that of a run on one machine"
	submitted       = "TestTheTutorialsCommandsTypedIntoSubmitPreemptAWorkerAndBothJobsFinish submits with such flags"
	forecasts       = "TestTheExitCodeOfAForecastIsItsOutcome, and TestAWholePlanIsForecast; here the file or the plan is the reader's"
	gate            = "TestAGateRefusesWhatCanNeverRunAndLetsTheRestPass"
	dryRunRole      = "TestAGateCreatesPodsAndJobsAsADryRunOnly"
	kubectlList     = "TestASnapshotFileIsAnyListOfObjects reads such a list; kubectl makes it of the reader's cluster"
	kubectlOfGuides = "TestAUserHasTheVerbsThatTheGuidesCommandsNeedAndNoOther runs kubectl's commands; the names are the reader's"
	imports         = "TestImportAndThenARemoval"
	scripts         = "TestALoopWithItsOwnCollectivesEqualsAPlainLoopWhateverHappensToItsWorkers and its like run the scripts, where PyTorch is"
	racks           = "TestReplayOfAScenarioFileMatchesItsSimulation has these nodes; TestEveryExampleIsAppliedPlansNothingMoreAndLeavesNothing has the jobs"
	actions         = "TestActionsAreTriggeredByTheLifeOfAResource, where Terraform has actions (make test-clis)"
	queries         = "TestConfigurationGeneratedByAQueryPlansAsEmpty, where Terraform has queries (make test-clis)"
	audits          = "TestTheAuditOfAClusterHasWhatMastersReportedAndOtherWorkloads"
	moduleTests     = "TestTheModulesOwnTestsPass"
	applied         = "TestEveryExampleIsAppliedPlansNothingMoreAndLeavesNothing; names of images and clusters are the reader's"
	readmeJob       = "TestEveryBlockOfADocumentIsAppliedPlansNothingMoreAndLeavesNothing; names of images and clusters are the reader's"
	kueueItself     = "TestKueueItselfQueuesAndPreempts starts such a cluster"
	clusterCommands = "TestCommandOnRunningCluster"

	aClone        = "no repository is in reach of the tests; make test builds and runs the rest"
	cloud         = "needs an account of the cloud, which costs money; its configuration is applied on a local cluster"
	measures      = "takes more than an hour; its flags are checked"
	pushes        = "needs a registry; TestArchivesAreWrittenTheImageIsPushedAndTheNextStepIsPrinted has one of its own"
	snapshotOfOwn = "needs a cluster of the reader; TestAForecastFromAFileIsThatFromTheCluster does the same"
)

// shellBlocks has every block of commands of the documents for users: document, and the beginning of the first command.
var shellBlocks = map[string]string{
	`README.md: $ bin/elastic-sim forecast --snapshot examples/snapshots/gpu`:                                      runs,
	`README.md: bin/elastic-sim forecast -f rayjob.yaml -n team-a`:                                                 forecasts,
	`README.md: export TF_CLI_CONFIG_FILE=$PWD/bin/dev.tfrc KUBE_CONFIG_PATH`:                                      readmeJob,
	`README.md: git clone https://github.com/elastic-training/terraform-prov`:                                      aClone,
	`examples/README.md: make build image PUSH=registry.example.com/team/elastic-trai`:                             pushes,
	`examples/aks/README.md: export TF_CLI_CONFIG_FILE=$PWD/../../bin/dev.tfrc`:                                    cloud,
	`examples/aks/README.md: kubectl get nodes -l kubernetes.azure.com/scalesetpriority=s`:                         cloud,
	`examples/aks/README.md: terraform destroy`:                                                                    cloud,
	`examples/eks/README.md: export TF_CLI_CONFIG_FILE=$PWD/../../bin/dev.tfrc`:                                    cloud,
	`examples/eks/README.md: kubectl get nodes -l eks.amazonaws.com/capacityType=SPOT -o`:                          cloud,
	`examples/eks/README.md: terraform destroy`:                                                                    cloud,
	`examples/elastic-pytorch/README.md: export TF_VAR_image=registry.example.com/team/elastic-pytorc`:             applied,
	`examples/elastic-under-a-queue/README.md: terraform apply -var epochs=20`:                                     applied,
	`examples/forecast-gate/README.md: terraform plan`:                                                             gate,
	`examples/gke/README.md: export TF_CLI_CONFIG_FILE=$PWD/../../bin/dev.tfrc`:                                    cloud,
	`examples/gke/README.md: kubectl get pods -n training -o wide`:                                                 cloud,
	`examples/gke/README.md: terraform destroy`:                                                                    cloud,
	`examples/gpu-cluster/README.md: export TF_VAR_config_path=~/.kube/config TF_VAR_image=regist`:                 applied,
	`examples/gpu-cluster/README.md: make -C ../.. build`:                                                          pushes,
	`examples/kind/README.md: kind create cluster --wait 5m`:                                                       onKind,
	`examples/kind/README.md: kubectl wait --for=condition=Complete job/urgent --timeout=1`:                        onKind,
	`examples/kind/README.md: make -C ../.. provider image`:                                                        onKind,
	`examples/kind/README.md: node=$(kubectl get nodes -o name | tail -n 1)`:                                       onKind,
	`examples/kind/README.md: terraform apply -auto-approve`:                                                       onKind,
	`examples/kind/README.md: terraform apply -auto-approve -var submit_urgent=false`:                              onKind,
	`examples/kind/README.md: terraform destroy -auto-approve`:                                                     onKind,
	`examples/models/README.md: ../../bin/elastic-trainer model mnist_functional_api.py`:                           runs,
	`examples/modules/team-queue/README.md: KUBE_CONFIG_PATH=~/.kube/config terraform test`:                        moduleTests,
	`examples/names-limits-and-pods/README.md: terraform apply`:                                                    applied,
	`examples/pytorch/README.md: terraform apply`:                                                                  applied,
	`examples/racks-and-blocks/README.md: export KUBE_CONFIG_PATH=~/.kube/config`:                                  applied,
	`examples/rbac/README.md: kubectl apply -f rbac.yaml`:                                                          kubectlOfGuides,
	`examples/scenarios/README.md: ../../bin/elastic-sim run elastic-scheduling.yaml -o report.`:                   runs,
	`examples/snapshots/README.md: $ ../../bin/elastic-sim forecast --snapshot gpu-cluster.json`:                   runs,
	`examples/snapshots/README.md: make -C ../.. elastic-sim`:                                                      snapshotOfOwn,
	`examples/somebody-elses-job/README.md: export KUBE_CONFIG_PATH=~/.kube/config`:                                forecasts,
	`examples/teams-in-a-cohort/README.md: export KUBE_CONFIG_PATH=~/.kube/config`:                                 applied,
	`examples/tutorials/elastic-scheduling/README.md: terraform apply -var low_epochs=50 -var submit_high=false`:   tutorial,
	`examples/tutorials/queue-priorities/README.md: terraform apply -var submit_high=false`:                        tutorial,
	`examples/unreliable-nodes/README.md: terraform apply -var pace=50ms`:                                          chaos,
	`simcluster/README.md: bin/simcluster up --node-group name=gpu,count=8,cpu=8,resour`:                           clusterCommands,
	`simcluster/README.md: make build`:                                                                             clusterCommands,
	`simcluster/README.md: make controllers`:                                                                       kueueItself,
	`templates/guides/elastic-jobs-under-kueue.md: bin/elastic-sim compare examples/scenarios/victims-by-admiss`:   runs,
	`templates/guides/elastic-jobs-under-kueue.md: kubectl annotate --overwrite job/NAME elastic-training.githu`:   kubectlOfGuides,
	`templates/guides/elastic-jobs-under-kueue.md: kubectl get workloads -n team-research`:                         kubectlOfGuides,
	`templates/guides/elastic-jobs-under-kueue.md: make bench ARGS="--only checkpoint-age --rounds 3 --trace $P`:   measures,
	`templates/guides/elastic-scheduling.md: bin/elastic-trainer train --model-file examples/models/mnist`:         sameModel,
	`templates/guides/elastic-scheduling.md: export $(bin/simcluster up --image elastic-trainer=bin/elast`:         tutorial,
	`templates/guides/elastic-scheduling.md: export TF_CLI_CONFIG_FILE=$PWD/bin/dev.tfrc`:                          tutorial,
	`templates/guides/elastic-scheduling.md: export TF_VAR_config_path=$KUBECONFIG TF_VAR_low_epochs=8 TF`:         tutorial,
	`templates/guides/elastic-scheduling.md: git clone https://github.com/elastic-training/terraform-prov`:         aClone,
	`templates/guides/elastic-scheduling.md: kubectl describe job low-prio-job`:                                    tutorial,
	`templates/guides/elastic-scheduling.md: kubectl get events --field-selector reason=Preempted`:                 tutorial,
	`templates/guides/elastic-scheduling.md: kubectl wait --for=condition=Complete job/high-prio-job --ti`:         tutorial,
	`templates/guides/elastic-scheduling.md: kubectl wait --for=condition=Complete job/low-prio-job --tim`:         tutorial,
	`templates/guides/elastic-scheduling.md: terraform -chdir=examples/tutorials/elastic-scheduling apply`:         tutorial,
	`templates/guides/elastic-scheduling.md: terraform -chdir=examples/tutorials/elastic-scheduling destr`:         tutorial,
	`templates/guides/elastic-scheduling.md: terraform -chdir=examples/tutorials/elastic-scheduling plan`:          tutorial,
	`templates/guides/least-privilege.md: kubectl apply -f examples/rbac/rbac.yaml`:                                kubectlOfGuides,
	`templates/guides/least-privilege.md: kubectl apply -f examples/rbac/suspend.yaml`:                             kubectlOfGuides,
	`templates/guides/least-privilege.md: kubectl auth can-i create jobs.batch --namespace=team-a --as`:            kubectlOfGuides,
	`templates/guides/forecast-reference.md: kubectl get nodes,pods,priorityclasses,namespaces,poddisrupt`:         kubectlList,
	`templates/guides/moving-from-elasticdl.md: bin/elastic-trainer data synth --output digits --records 100`:      runs,
	`templates/guides/moving-from-elasticdl.md: bin/elastic-trainer model examples/models/mnist_functional_a`:      runs,
	`templates/guides/moving-from-elasticdl.md: bin/elastic-trainer submit --job_name=low-prio-job --model_f`:      submitted,
	`templates/guides/moving-from-elasticdl.md: bin/elastic-trainer train --model-file examples/models/mnist`:      runs,
	`templates/guides/names-limits-and-pods.md: terraform import elastic_task.report default/report-x7k2p`:         imports,
	`templates/guides/performance.md: make bench`:                                                                  measures,
	`templates/guides/pytorch.md: bin/elastic-trainer train --elastic restart --worker-command`:                    scripts,
	`templates/guides/pytorch.md: bin/elastic-trainer train --worker-command python3 --elastic`:                    scripts,
	`templates/guides/pytorch.md: bin/elastic-trainer train --worker-command python3 --model-f`:                    scripts,
	`templates/guides/pytorch.md: make image PUSH=registry.example.com/team/elastic-trainer:1`:                     pushes,
	`templates/guides/queue-priorities.md: export TF_CLI_CONFIG_FILE=$PWD/bin/dev.tfrc`:                            tutorial,
	`templates/guides/queue-priorities.md: export TF_VAR_config_path=$KUBECONFIG`:                                  tutorial,
	`templates/guides/queue-priorities.md: export TF_VAR_high_seconds=60`:                                          tutorial,
	`templates/guides/queue-priorities.md: kubectl logs -l batch.kubernetes.io/job-name=low`:                       tutorial,
	`templates/guides/queue-priorities.md: kubectl wait --for=condition=Complete job/high --timeout=5m`:            tutorial,
	`templates/guides/queue-priorities.md: make controllers`:                                                       tutorial,
	`templates/guides/queue-priorities.md: terraform -chdir=examples/tutorials/queue-priorities apply`:             tutorial,
	`templates/guides/queue-priorities.md: terraform -chdir=examples/tutorials/queue-priorities apply -`:           tutorial,
	`templates/guides/queue-priorities.md: terraform -chdir=examples/tutorials/queue-priorities destroy`:           tutorial,
	`templates/guides/queue-priorities.md: terraform -chdir=examples/tutorials/queue-priorities/workloa`:           tutorial,
	`templates/guides/racks-and-blocks.md: export $(bin/simcluster up --kueue --image '*'=host --image`:            racks,
	`templates/guides/running-on-gke.md: export PROJECT=my-project ZONE=us-central1-b REGION=us-centr`:             cloud,
	`templates/guides/running-on-gke.md: export TF_CLI_CONFIG_FILE=$PWD/../../bin/dev.tfrc`:                        cloud,
	`templates/guides/running-on-gke.md: gcloud artifacts repositories add-iam-policy-binding elastic`:             cloud,
	`templates/guides/running-on-gke.md: gcloud artifacts repositories create elastic --repository-fo`:             cloud,
	`templates/guides/running-on-gke.md: gcloud container node-pools create t4 --cluster=elastic --pr`:             cloud,
	`templates/guides/running-on-gke.md: gcloud iam service-accounts create terraform --project="$PRO`:             cloud,
	`templates/guides/running-on-gke.md: gcloud projects add-iam-policy-binding "$PROJECT" --member=u`:             cloud,
	`templates/guides/running-on-gke.md: kubectl apply --server-side -f https://github.com/kubernetes`:             cloud,
	`templates/guides/running-on-gke.md: kubectl apply -f examples/rbac/rbac.yaml`:                                 cloud,
	`templates/guides/running-on-gke.md: terraform destroy`:                                                        cloud,
	`templates/guides/supported-keras-api.md: bin/elastic-trainer model examples/models/mnist_functional_a`:        runs,
	`templates/guides/terraform-and-opentofu.md: $ terraform apply -invoke=action.elastic_job_checkpoint.befo`:     actions,
	`templates/guides/terraform-and-opentofu.md: $ terraform apply -invoke=action.elastic_queue_hold.freeze`:       actions,
	`templates/guides/terraform-and-opentofu.md: $ terraform plan`:                                                 queries,
	`templates/guides/terraform-and-opentofu.md: $ terraform query -generate-config-out=found.tf`:                  queries,
	`templates/guides/troubleshooting.md: kubectl describe job nightly -n team-a`:                                  kubectlOfGuides,
	`templates/guides/watching-a-job.md: bin/elastic-sim audit`:                                                    audits,
	`templates/guides/watching-a-job.md: kubectl port-forward job/low-prio-job 8080`:                               kubectlOfGuides,
	`templates/guides/will-my-job-preempt-anyone.md: bin/elastic-sim forecast -f job.yaml --context production -n`: forecasts,
	`templates/guides/will-my-job-preempt-anyone.md: bin/elastic-sim snapshot -o cluster.json.gz`:                  forecasts,
	`templates/guides/will-my-job-preempt-anyone.md: kubectl apply -f examples/rbac/dry-run.yaml`:                  dryRunRole,
	`templates/guides/will-my-job-preempt-anyone.md: terraform plan -out plan.out`:                                 forecasts,
}
