package dev.millrace.runtime.rights;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ThreadLocalRandom;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.raft.DynamicVoters;

/** A broker with SASL/PLAIN that denies everything without an ACL; {@code admin} is a superuser. */
public final class SecuredBroker implements AutoCloseable {
    private final KafkaRaftServer server;
    private final int port;
    private final Map<String, Integer> ports = new TreeMap<>();

    public SecuredBroker(Path directory, String... users) throws Exception {
        this(directory, Map.of(), Map.of(), users);
    }

    /**
     * With more listeners.
     *
     * @param protocols of further listeners, by their names
     * @param more settings, which these listeners need
     */
    public SecuredBroker(Path directory, Map<String, String> protocols, Map<String, String> more, String... users)
            throws Exception {
        port = freePort();
        int controllerPort = freePort();
        format(directory, controllerPort);
        StringBuilder jaas = new StringBuilder(login("admin")).append(" user_admin=\"admin\"");
        for (String user : users) {
            jaas.append(" user_").append(user).append("=\"").append(user).append('"');
        }
        StringBuilder listeners =
                new StringBuilder("CLIENT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controllerPort);
        StringBuilder map = new StringBuilder("CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT");
        for (String name : new TreeSet<>(protocols.keySet())) {
            ports.put(name, freePort());
            listeners.append(',').append(name).append("://127.0.0.1:").append(ports.get(name));
            map.append(',').append(name).append(':').append(protocols.get(name));
        }
        Properties settings = new Properties();
        settings.putAll(Map.of(
                "process.roles",
                "broker,controller",
                "node.id",
                "1",
                "controller.listener.names",
                "CONTROLLER",
                "inter.broker.listener.name",
                "CLIENT",
                "listeners",
                listeners.toString(),
                "advertised.listeners",
                listeners.toString(),
                "listener.security.protocol.map",
                map.toString(),
                "controller.quorum.bootstrap.servers",
                "127.0.0.1:" + controllerPort,
                "log.dirs",
                directory.toString(),
                "auto.create.topics.enable",
                "false"));
        settings.putAll(Map.of(
                "sasl.enabled.mechanisms",
                "PLAIN",
                "sasl.mechanism.inter.broker.protocol",
                "PLAIN",
                "listener.name.client.plain.sasl.jaas.config",
                jaas + ";",
                "authorizer.class.name",
                "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users",
                "User:admin;User:ANONYMOUS")); // only the broker at its own controller is anonymous
        settings.putAll(Map.of(
                "offsets.topic.replication.factor",
                "1",
                "offsets.topic.num.partitions",
                "1",
                "transaction.state.log.replication.factor",
                "1",
                "transaction.state.log.min.isr",
                "1",
                "transaction.state.log.num.partitions",
                "1",
                "group.initial.rebalance.delay.ms",
                "0",
                "group.min.session.timeout.ms",
                "3000",
                "message.max.bytes",
                Integer.toString(16 << 20),
                "log.cleaner.dedupe.buffer.size",
                Integer.toString(16 << 20),
                "log.index.size.max.bytes",
                Integer.toString(1 << 20)));
        settings.putAll(more);
        server = new KafkaRaftServer(new KafkaConfig(settings, false), Time.SYSTEM);
        server.startup();
    }

    /** Below the ports that outgoing connections and servers at port 0 get, so that none of them takes it before it is bound. */
    public static int freePort() {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(10_000, 32_000);
            try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (BindException taken) {
                continue;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private static void format(Path directory, int controllerPort) throws Exception {
        try (PrintStream quiet = new PrintStream(new ByteArrayOutputStream(), true, StandardCharsets.UTF_8)) {
            new Formatter()
                    .setPrintStream(quiet)
                    .setNodeId(1)
                    .setClusterId(Uuid.randomUuid().toString())
                    .setDirectories(List.of(directory.toString()))
                    .setMetadataLogDirectory(directory.toString())
                    .setControllerListenerName("CONTROLLER")
                    .setIgnoreFormatted(true)
                    .setHasDynamicQuorum(true)
                    .setInitialControllers(
                            DynamicVoters.parse("1@127.0.0.1:" + controllerPort + ":" + Uuid.randomUuid()))
                    .run();
        }
    }

    private static String login(String user) {
        return "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + user + "\" password=\""
                + user + "\"";
    }

    /** Where one of the further listeners is. */
    public String address(String listener) {
        return "127.0.0.1:" + ports.get(listener);
    }

    /** Client settings of this user. */
    public Map<String, Object> client(String user) {
        return Map.of(
                "bootstrap.servers",
                "127.0.0.1:" + port,
                "security.protocol",
                "SASL_PLAINTEXT",
                "sasl.mechanism",
                "PLAIN",
                "sasl.jaas.config",
                login(user) + ";");
    }

    @Override
    public void close() {
        server.shutdown();
        server.awaitShutdown();
    }
}
