// A plugin on the real go-plugin library, for the real-process tests. It behaves and misbehaves as tests/guest does:
// GUEST_MODE holds words separated by commas.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func is(mode string) bool {
	for _, found := range strings.Split(os.Getenv("GUEST_MODE"), ",") {
		if found == mode {
			return true
		}
	}
	return false
}

type guest struct {
	plugin.NetRPCUnsupportedPlugin
}

func (guest) GRPCServer(broker *plugin.GRPCBroker, _ *grpc.Server) error {
	go run(broker)
	return nil
}

func (guest) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (interface{}, error) {
	return nil, nil
}

func callBack(broker *plugin.GRPCBroker) string {
	conn, err := broker.Dial(1)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request := &grpc_health_v1.HealthCheckRequest{Service: "host"}
	response, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, request)
	if err != nil {
		return err.Error()
	}
	return response.GetStatus().String()
}

// What the plugin does beside serving.
func run(broker *plugin.GRPCBroker) {
	if is("dial99") {
		begin := time.Now()
		text := "connected"
		if _, err := broker.Dial(99); err != nil {
			text = err.Error()
		}
		fmt.Printf("dial 99 after %d ms: %s\n", time.Since(begin).Milliseconds(), text)
	}
	fmt.Println("callback: " + callBack(broker))
	if is("environment") {
		for _, entry := range os.Environ() {
			fmt.Println("env " + strings.SplitN(entry, "=", 2)[0])
		}
	}
	if is("flood_stdout") {
		flood(os.Stdout)
		fmt.Println("flooded stdout")
	}
	if is("flood_stderr") {
		flood(os.NewFile(2, "stderr"))
		fmt.Println("flooded stderr")
	}
	if is("no_line_end") {
		os.NewFile(1, "stdout").WriteString(strings.Repeat("x", 1<<20) + "\n")
		fmt.Println("printed 1 MiB")
	}
	if is("long_line") {
		raw := os.NewFile(2, "stderr")
		fmt.Fprintf(raw, "{\"@level\":\"info\",\"@message\":\"%s\"}\n", strings.Repeat("x", 300*1024))
		for number := 0; number < 1000; number++ {
			fmt.Fprintf(raw, "short %d\n", number)
		}
	}
	if is("log") {
		log.SetFlags(0)
		log.SetOutput(os.Stderr)
		log.Println("[WARN] careful")
	}
	if is("crash") {
		// Not before the host has seen that it runs.
		time.Sleep(1500 * time.Millisecond)
		panic("about to crash")
	}
}

func flood(stream *os.File) {
	for number := 0; number < 100000; number++ {
		fmt.Fprintf(stream, "line %d of a flood that says nothing\n", number)
	}
}

// Starts sleep in this process group, or by setsid outside it; both hold this process's pipes open.
func spawn(name string, args ...string) {
	command := exec.Command(name, args...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "child %d\n", command.Process.Pid)
}

func main() {
	if is("ignore_term") {
		signal.Ignore(syscall.SIGTERM)
	}
	if is("child") {
		spawn("sleep", "600")
	}
	if is("daemon") {
		spawn("setsid", "sleep", "600")
	}
	if is("panic_first") {
		panic("early boom")
	}
	if is("print_first") {
		fmt.Println("hello")
	}
	if is("init_error") {
		os.Setenv("PLUGIN_UNIX_SOCKET_GROUP", "no-such-group")
	}
	version := uint(1)
	if is("version7") {
		version = 7
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  version,
			MagicCookieKey:   "GOPLUGIN_TEST",
			MagicCookieValue: "crumb",
		},
		Plugins:    map[string]plugin.Plugin{"plugin": guest{}},
		GRPCServer: plugin.DefaultGRPCServer,
	})
	fmt.Fprintln(os.NewFile(2, "stderr"), "served")
	if is("ignore_shutdown") {
		select {}
	}
}
