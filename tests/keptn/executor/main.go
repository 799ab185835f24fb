// An executor on Keptn's Go library, as Keptn's users write them: `deployment` reads a file of its service and passes, `release` fails.
//
// `executor calls` makes every other call of the library once, and says of each whether it worked.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/keptn/go-utils/pkg/api/models"
	api "github.com/keptn/go-utils/pkg/api/utils"
	v2 "github.com/keptn/go-utils/pkg/api/utils/v2"
	keptnv2 "github.com/keptn/go-utils/pkg/lib/v0_2_0"
	"github.com/keptn/go-utils/pkg/sdk"
)

type deployment struct{}

func (deployment) Execute(keptn sdk.IKeptn, event sdk.KeptnEvent) (interface{}, *sdk.Error) {
	data := &keptnv2.DeploymentTriggeredEventData{}
	if err := keptnv2.Decode(event.Data, data); err != nil {
		return nil, failed(err)
	}
	scope := api.NewResourceScope().Project(data.Project).Stage(data.Stage).Service(data.Service).Resource("jmeter/load.jmx")
	resource, err := keptn.GetResourceHandler().GetResource(*scope)
	if err != nil {
		return nil, failed(err)
	}
	fmt.Printf("deployment: jmeter/load.jmx has %d bytes\n", len(resource.ResourceContent))
	return keptnv2.DeploymentFinishedEventData{EventData: keptnv2.EventData{
		Project: data.Project, Stage: data.Stage, Service: data.Service, Status: keptnv2.StatusSucceeded, Result: keptnv2.ResultPass,
	}}, nil
}

type release struct{}

func (release) Execute(sdk.IKeptn, sdk.KeptnEvent) (interface{}, *sdk.Error) {
	return nil, failed(errors.New("no such chart"))
}

func failed(err error) *sdk.Error {
	return &sdk.Error{StatusType: keptnv2.StatusErrored, ResultType: keptnv2.ResultFailed, Message: err.Error(), Err: err}
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "calls" {
		calls(os.Args[2])
		return
	}
	keptn := sdk.NewKeptn("keelway-session",
		sdk.WithTaskHandler("sh.keptn.event.deployment.triggered", deployment{}),
		sdk.WithTaskHandler("sh.keptn.event.release.triggered", release{}))
	if err := keptn.Start(); err != nil {
		fmt.Println("the executor ended:", err)
		os.Exit(1)
	}
}

// Each call once, in a project that exists and has stage dev and service carts.
func calls(project string) {
	set, err := v2.New(os.Getenv("KEPTN_API_ENDPOINT"), v2.WithAuthToken(os.Getenv("KEPTN_API_TOKEN")), v2.WithHTTPClient(&http.Client{}))
	if err != nil {
		fmt.Println("FAILED client:", err)
		os.Exit(1)
	}
	ctx, bad := context.Background(), 0
	told := func(call string, err error) {
		if err != nil {
			bad++
			fmt.Printf("FAILED %s: %v\n", call, err)
			return
		}
		fmt.Println("ok", call)
	}
	uri, changed := "slo.yaml", "changed.yaml"
	resource := func(name *string) []*models.Resource {
		return []*models.Resource{{ResourceURI: name, ResourceContent: "text"}}
	}
	stage := v2.NewResourceScope().Project(project).Stage("dev").Resource(uri)
	resources := set.Resources()
	_, err = resources.CreateProjectResources(ctx, project, resource(&changed), v2.ResourcesCreateProjectResourcesOptions{})
	told("Resources.CreateProjectResources", err)
	_, err = resources.UpdateProjectResources(ctx, project, resource(&changed), v2.ResourcesUpdateProjectResourcesOptions{})
	told("Resources.UpdateProjectResources", err)
	_, err = resources.UpdateServiceResources(ctx, project, "dev", "carts", resource(&changed), v2.ResourcesUpdateServiceResourcesOptions{})
	told("Resources.UpdateServiceResources", err)
	_, err = resources.UpdateResource(ctx, resource(&uri)[0], *stage, v2.ResourcesUpdateResourceOptions{})
	told("Resources.UpdateResource", err)
	found, err := resources.GetResource(ctx, *stage, v2.ResourcesGetResourceOptions{})
	if err == nil && found.ResourceContent != "text" {
		err = errors.New("another content: " + found.ResourceContent)
	}
	told("Resources.GetResource", err)
	listed, err := resources.GetAllStageResources(ctx, project, "dev", v2.ResourcesGetAllStageResourcesOptions{})
	if err == nil && len(listed) == 0 {
		err = errors.New("an empty list")
	}
	told("Resources.GetAllStageResources", err)
	_, err = resources.GetAllServiceResources(ctx, project, "dev", "carts", v2.ResourcesGetAllServiceResourcesOptions{})
	told("Resources.GetAllServiceResources", err)
	told("Resources.DeleteResource", resources.DeleteResource(ctx, *stage, v2.ResourcesDeleteResourceOptions{}))
	_, err = resources.GetResource(ctx, *stage, v2.ResourcesGetResourceOptions{})
	if !errors.Is(err, v2.ResourceNotFoundError) {
		told("Resources.GetResource of a deleted one", fmt.Errorf("expected that it is not found: %v", err))
	}

	integration := models.Integration{Name: "calls", Subscriptions: []models.EventSubscription{{Event: "sh.keptn.event.test.triggered"}}}
	id, err := set.Uniform().RegisterIntegration(ctx, integration, v2.UniformRegisterIntegrationOptions{})
	told("Uniform.RegisterIntegration", err)
	pinged, err := set.Uniform().Ping(ctx, id, v2.UniformPingOptions{})
	if err == nil && (len(pinged.Subscriptions) != 1 || pinged.Subscriptions[0].ID == "") {
		err = fmt.Errorf("other subscriptions: %v", pinged.Subscriptions)
	}
	told("Uniform.Ping", err)
	_, err = set.Uniform().CreateSubscription(ctx, id, models.EventSubscription{Event: "sh.keptn.event.release.triggered"}, v2.UniformCreateSubscriptionOptions{})
	told("Uniform.CreateSubscription", err)
	all, err := set.Uniform().GetRegistrations(ctx, v2.UniformGetRegistrationsOptions{})
	if err == nil && len(all) == 0 {
		err = errors.New("an empty list")
	}
	told("Uniform.GetRegistrations", err)

	set.Logs().Log([]models.LogEntry{{IntegrationID: id, Message: "a message"}}, v2.LogsLogOptions{})
	told("Logs.Flush", set.Logs().Flush(ctx, v2.LogsFlushOptions{}))
	logs, err := set.Logs().GetLogs(ctx, models.GetLogsParams{LogFilter: models.LogFilter{IntegrationID: id}}, v2.LogsGetLogsOptions{})
	if err == nil && (len(logs.Logs) != 1 || logs.Logs[0].Message != "a message") {
		err = fmt.Errorf("other logs: %v", logs.Logs)
	}
	told("Logs.GetLogs", err)
	told("Logs.DeleteLogs", set.Logs().DeleteLogs(ctx, models.LogFilter{IntegrationID: id}, v2.LogsDeleteLogsOptions{}))
	told("Uniform.UnregisterIntegration", set.Uniform().UnregisterIntegration(ctx, id, v2.UniformUnregisterIntegrationOptions{}))

	projects, err := set.Projects().GetAllProjects(ctx, v2.ProjectsGetAllProjectsOptions{})
	if err == nil && len(projects) == 0 {
		err = errors.New("an empty list")
	}
	told("Projects.GetAllProjects", err)
	stages, err := set.Stages().GetAllStages(ctx, project, v2.StagesGetAllStagesOptions{})
	if err == nil && len(stages) == 0 {
		err = errors.New("an empty list")
	}
	told("Stages.GetAllStages", err)
	_, err = set.Services().GetAllServices(ctx, project, "dev", v2.ServicesGetAllServicesOptions{})
	told("Services.GetAllServices", err)
	_, err = set.Services().GetService(ctx, project, "dev", "carts", v2.ServicesGetServiceOptions{})
	told("Services.GetService", err)
	events, refused := set.Events().GetEvents(ctx, &v2.EventFilter{Project: project, FromTime: "1970-01-01T00:00:00.000Z"}, v2.EventsGetEventsOptions{})
	if refused != nil {
		told("Events.GetEvents", refused.ToError())
	} else if len(events) == 0 {
		told("Events.GetEvents", errors.New("an empty list"))
	} else {
		told("Events.GetEvents", nil)
	}
	_, refused = set.Projects().GetProject(ctx, models.Project{ProjectName: "no-such-project"}, v2.ProjectsGetProjectOptions{})
	if refused == nil || refused.GetMessage() == "" {
		told("Projects.GetProject of an unknown one", errors.New("no refusal with a message"))
	} else {
		told("Projects.GetProject of an unknown one: "+refused.GetMessage(), nil)
	}
	if bad > 0 {
		os.Exit(1)
	}
}
