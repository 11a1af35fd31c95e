// Never compiled: there is no Go module proxy for go-control-plane on the machine where the kit was written.
//
// The adapter of go-control-plane's snapshot cache, whose snapshot is that of all nodes:
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
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
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

// The resources by type and name.
var store = map[string]map[string]types.Resource{}

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
		store = map[string]map[string]types.Resource{}
		return nil
	case "delete":
		delete(store[o.Type], o.Name)
		return nil
	case "put":
		value, err := base64.StdEncoding.DecodeString(o.Any)
		if err != nil {
			return err
		}
		message, err := (&anypb.Any{TypeUrl: o.Type, Value: value}).UnmarshalNew()
		if err != nil {
			return err
		}
		if store[o.Type] == nil {
			store[o.Type] = map[string]types.Resource{}
		}
		store[o.Type][o.Name] = message
		return nil
	}
	return fmt.Errorf("%s is not supported", o.Op)
}

func publish(snapshots cache.SnapshotCache, version int) error {
	resources := map[string][]types.Resource{}
	for typeURL, named := range store {
		for _, resource := range named {
			resources[typeURL] = append(resources[typeURL], resource)
		}
	}
	snapshot, err := cache.NewSnapshot(strconv.Itoa(version), resources)
	if err != nil {
		return err
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
	go grpcServer.Serve(listener)
	if err := publish(snapshots, 0); err != nil {
		panic(err)
	}
	fmt.Printf("{\"ready\":{\"address\":%q,\"features\":[\"sotw\",\"delta\"]}}\n", listener.Addr().String())
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for version := 1; lines.Scan(); version++ {
		var o op
		err := json.Unmarshal(lines.Bytes(), &o)
		if err == nil {
			err = apply(o)
		}
		if err == nil {
			err = publish(snapshots, version)
		}
		if err != nil {
			answer, _ := json.Marshal(map[string]string{"error": err.Error()})
			fmt.Println(string(answer))
			continue
		}
		fmt.Println("{}")
	}
}
