// A host on the real go-plugin library: starts the plugin named by its argument with automatic mutual TLS, pings it,
// serves the health service to it on broker id 1, and kills it. Every step that worked is a line on stdout.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

type host struct {
	plugin.NetRPCUnsupportedPlugin
}

func (host) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (host) GRPCClient(_ context.Context, broker *plugin.GRPCBroker, _ *grpc.ClientConn) (interface{}, error) {
	go broker.AcceptAndServe(1, func(options []grpc.ServerOption) *grpc.Server {
		server := grpc.NewServer(options...)
		service := health.NewServer()
		service.SetServingStatus("host", grpc_health_v1.HealthCheckResponse_SERVING)
		grpc_health_v1.RegisterHealthServer(server, service)
		return server
	})
	return nil, nil
}

type output struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.bytes.Write(data)
}

func (o *output) text() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.bytes.String()
}

func check(step string, err error) {
	if err != nil {
		fmt.Println(step, "failed:", err)
		os.Exit(1)
	}
	fmt.Println(step)
}

func main() {
	var stdout output
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  1,
			MagicCookieKey:   "GOPLUGIN_TEST",
			MagicCookieValue: "crumb",
		},
		Plugins:          map[string]plugin.Plugin{"plugin": host{}},
		Cmd:              exec.Command(os.Args[1]),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		SyncStdout:       &stdout,
		Logger:           hclog.NewNullLogger(),
	})
	connection, err := client.Client()
	check("started", err)
	check("pinged", connection.Ping())
	_, err = connection.Dispense("plugin")
	check("dispensed", err)
	for begin := time.Now(); !strings.Contains(stdout.text(), "callback: SERVING"); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			check("called back", fmt.Errorf("the plugin printed %q", stdout.text()))
		}
	}
	check("called back", nil)
	begin := time.Now()
	client.Kill()
	if took := time.Since(begin); took > 1900*time.Millisecond {
		check("stopped", fmt.Errorf("it took %s, so it was killed", took))
	}
	check("stopped", nil)
}
