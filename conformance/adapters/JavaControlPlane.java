// Never compiled against java-control-plane, which cannot be had on the machine where the kit was written.
//
// The adapter of java-control-plane's SimpleCache, whose snapshot is that of all nodes. It needs
// io.envoyproxy.controlplane:server (with cache and api), io.grpc:grpc-netty and com.google.code.gson:gson:
// xds-conformance server --control stdio -- java -cp "$CLASSPATH" JavaControlPlane

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.InvalidProtocolBufferException;
import io.envoyproxy.controlplane.cache.v3.SimpleCache;
import io.envoyproxy.controlplane.cache.v3.Snapshot;
import io.envoyproxy.controlplane.server.V3DiscoveryServer;
import io.envoyproxy.envoy.config.cluster.v3.Cluster;
import io.envoyproxy.envoy.config.endpoint.v3.ClusterLoadAssignment;
import io.envoyproxy.envoy.config.listener.v3.Listener;
import io.envoyproxy.envoy.config.route.v3.RouteConfiguration;
import io.grpc.Server;
import io.grpc.netty.NettyServerBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

public final class JavaControlPlane {
  private static final String GROUP = "kit";

  /** The resources of a type by their names, and how often they have changed. */
  private static final class OfType<T> {
    final Map<String, T> resources = new TreeMap<>();
    final Parser<T> parser;
    int version;

    OfType(Parser<T> parser) {
      this.parser = parser;
    }

    void put(String name, byte[] bytes) throws InvalidProtocolBufferException {
      resources.put(name, parser.parse(bytes));
      version++;
    }

    void delete(String name) {
      if (resources.remove(name) != null) {
        version++;
      }
    }

    void clear() {
      if (!resources.isEmpty()) {
        resources.clear();
        version++;
      }
    }

    String version() {
      return Integer.toString(version);
    }
  }

  private interface Parser<T> {
    T parse(byte[] bytes) throws InvalidProtocolBufferException;
  }

  private final SimpleCache<String> cache = new SimpleCache<>(node -> GROUP);
  private final OfType<Cluster> clusters = new OfType<>(Cluster::parseFrom);
  private final OfType<ClusterLoadAssignment> endpoints = new OfType<>(ClusterLoadAssignment::parseFrom);
  private final OfType<Listener> listeners = new OfType<>(Listener::parseFrom);
  private final OfType<RouteConfiguration> routes = new OfType<>(RouteConfiguration::parseFrom);

  public static void main(String[] arguments) throws IOException {
    new JavaControlPlane().run();
  }

  private void run() throws IOException {
    publish();
    V3DiscoveryServer plane = new V3DiscoveryServer(cache);
    Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
        .addService(plane.getAggregatedDiscoveryServiceImpl())
        .addService(plane.getClusterDiscoveryServiceImpl())
        .addService(plane.getEndpointDiscoveryServiceImpl())
        .addService(plane.getListenerDiscoveryServiceImpl())
        .addService(plane.getRouteDiscoveryServiceImpl())
        .build()
        .start();
    say("{\"ready\":{\"address\":\"127.0.0.1:" + server.getPort()
        + "\",\"features\":[\"sotw\",\"delta\",\"per-type\"]}}");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonObject answer = new JsonObject();
      try {
        apply(JsonParser.parseString(line).getAsJsonObject());
        publish();
      } catch (InvalidProtocolBufferException | RuntimeException error) {
        answer.addProperty("error", String.valueOf(error.getMessage()));
      }
      say(answer.toString());
    }
    server.shutdownNow();
  }

  private void apply(JsonObject op) throws InvalidProtocolBufferException {
    switch (text(op, "op")) {
      case "batch":
        for (JsonElement each : op.getAsJsonArray("ops")) {
          apply(each.getAsJsonObject());
        }
        return;
      case "clear":
        clusters.clear();
        endpoints.clear();
        listeners.clear();
        routes.clear();
        return;
      case "put":
        ofType(text(op, "type")).put(text(op, "name"), Base64.getDecoder().decode(text(op, "any")));
        return;
      case "delete":
        ofType(text(op, "type")).delete(text(op, "name"));
        return;
      default:
        throw new IllegalArgumentException(text(op, "op") + " is not supported");
    }
  }

  private OfType<?> ofType(String typeUrl) {
    switch (typeUrl) {
      case "type.googleapis.com/envoy.config.cluster.v3.Cluster":
        return clusters;
      case "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment":
        return endpoints;
      case "type.googleapis.com/envoy.config.listener.v3.Listener":
        return listeners;
      case "type.googleapis.com/envoy.config.route.v3.RouteConfiguration":
        return routes;
      default:
        throw new IllegalArgumentException(typeUrl + " is not served");
    }
  }

  /** Gives the cache a snapshot; a type that has not changed keeps its version. */
  private void publish() {
    cache.setSnapshot(GROUP, Snapshot.create(
        clusters.resources.values(), clusters.version(),
        endpoints.resources.values(), endpoints.version(),
        listeners.resources.values(), listeners.version(),
        routes.resources.values(), routes.version(),
        Collections.emptyList(), "0"));
  }

  private static String text(JsonObject op, String key) {
    if (!op.has(key)) {
      throw new IllegalArgumentException(key + " is missing");
    }
    return op.get(key).getAsString();
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
