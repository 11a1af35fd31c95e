// Never compiled against go-control-plane, which cannot be had on the machine where the kit was written.
//
// The adapter of go-control-plane's snapshot cache (v0.13 and later), whose snapshot is that of all nodes:
// xds-conformance server --control stdio -- ./go_control_plane
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"

	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	clusters "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpoints "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	listeners "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	routes "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
)

type op struct {
	Op, Type, Name, Any string
	Ops                 []op
}

type oneNode struct{}

func (oneNode) ID(*core.Node) string { return "kit" }

// What there is of a type, and how often that has changed.
type ofType struct {
	response  types.ResponseType
	version   int
	resources map[string]types.Resource
}

var store = map[string]*ofType{
	resource.ClusterType:  {response: types.Cluster},
	resource.EndpointType: {response: types.Endpoint},
	resource.ListenerType: {response: types.Listener},
	resource.RouteType:    {response: types.Route},
}

func apply(o op) error {
	switch o.Op {
	case "batch":
		for _, each := range o.Ops {
			if err := apply(each); err != nil {
				return err
			}
		}
		return nil
	case "clear":
		for _, of := range store {
			if len(of.resources) > 0 {
				of.resources = nil
				of.version++
			}
		}
		return nil
	}
	of, served := store[o.Type]
	if !served {
		return fmt.Errorf("%s is not served", o.Type)
	}
	switch o.Op {
	case "delete":
		if _, exists := of.resources[o.Name]; !exists {
			return nil
		}
		delete(of.resources, o.Name)
	case "put":
		value, err := base64.StdEncoding.DecodeString(o.Any)
		if err != nil {
			return err
		}
		message, err := (&anypb.Any{TypeUrl: o.Type, Value: value}).UnmarshalNew()
		if err != nil {
			return err
		}
		if of.resources == nil {
			of.resources = map[string]types.Resource{}
		}
		of.resources[o.Name] = message
	default:
		return fmt.Errorf("%s is not supported", o.Op)
	}
	of.version++
	return nil
}

// Gives the cache a snapshot; a type that has not changed keeps its version.
func publish(snapshots cache.SnapshotCache) error {
	snapshot := &cache.Snapshot{}
	for _, of := range store {
		items := make([]types.Resource, 0, len(of.resources))
		for _, item := range of.resources {
			items = append(items, item)
		}
		snapshot.Resources[of.response] = cache.NewResources(strconv.Itoa(of.version), items)
	}
	return snapshots.SetSnapshot(context.Background(), "kit", snapshot)
}

func main() {
	snapshots := cache.NewSnapshotCache(false, oneNode{}, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	grpcServer := grpc.NewServer()
	plane := server.NewServer(context.Background(), snapshots, nil)
	discovery.RegisterAggregatedDiscoveryServiceServer(grpcServer, plane)
	clusters.RegisterClusterDiscoveryServiceServer(grpcServer, plane)
	endpoints.RegisterEndpointDiscoveryServiceServer(grpcServer, plane)
	listeners.RegisterListenerDiscoveryServiceServer(grpcServer, plane)
	routes.RegisterRouteDiscoveryServiceServer(grpcServer, plane)
	if err := publish(snapshots); err != nil {
		panic(err)
	}
	go grpcServer.Serve(listener)
	fmt.Printf("{\"ready\":{\"address\":%q,\"features\":[\"sotw\",\"delta\",\"per-type\"]}}\n", listener.Addr().String())
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var o op
		err := json.Unmarshal(lines.Bytes(), &o)
		if err == nil {
			err = apply(o)
		}
		if err == nil {
			err = publish(snapshots)
		}
		if err != nil {
			answer, _ := json.Marshal(map[string]string{"error": err.Error()})
			fmt.Println(string(answer))
			continue
		}
		fmt.Println("{}")
	}
}
