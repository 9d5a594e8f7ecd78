package dev.millrace.runtime.rights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.run.BrokerUnavailableException;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicsConfig;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Messages of a first contact when client and broker do not fit: each cause has its own. */
@Timeout(900)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ConnectionCausesIT {
    private static final TopicsConfig CONFIG = TopicsConfig.defaults().withTimeoutMs(4_000);
    private static final String PASSWORD = "secret-of-stores";

    @TempDir
    private static Path directory;

    private SecuredBroker broker;

    @BeforeAll
    void start() throws Exception {
        keyPair("broker", "CN=broker", "-validity", "30");
        keyPair("ca", "CN=ca", "-ext", "bc:critical", "-validity", "30");
        keyPair("old", "CN=old");
        expire("old");
        keyPair("stranger", "CN=stranger", "-validity", "30");
        trust("trusted", "broker", "ca");
        trust("other", "stranger");
        Map<String, String> more = new HashMap<>();
        for (String listener : List.of("tls", "old", "mutual", "login")) {
            String name = "listener.name." + listener + ".ssl.";
            more.put(name + "keystore.location", store(listener.equals("old") ? "old" : "broker"));
            more.put(name + "keystore.password", PASSWORD);
            more.put(name + "keystore.type", "PKCS12");
        }
        more.put("listener.name.mutual.ssl.client.auth", "required");
        more.put("listener.name.mutual.ssl.truststore.location", store("trusted"));
        more.put("listener.name.mutual.ssl.truststore.password", PASSWORD);
        more.put("listener.name.mutual.ssl.truststore.type", "PKCS12");
        more.put("listener.name.login.plain.sasl.jaas.config", login("reader", "reader") + " user_reader=\"reader\";");
        broker = new SecuredBroker(
                directory.resolve("broker"),
                Map.of("PLAIN", "PLAINTEXT", "TLS", "SSL", "OLD", "SSL", "MUTUAL", "SSL", "LOGIN", "SASL_SSL"),
                more,
                "reader");
    }

    @AfterAll
    void stop() {
        broker.close();
    }

    private static String store(String name) {
        return directory.resolve(name + ".p12").toString();
    }

    private static void keyPair(String name, String subject, String... more) throws Exception {
        List<String> arguments = new ArrayList<>(
                List.of("-genkeypair", "-alias", name, "-keyalg", "EC", "-dname", subject, "-ext", "SAN=ip:127.0.0.1"));
        arguments.addAll(List.of(more));
        keytool(name, arguments.toArray(String[]::new));
        keytool(
                name,
                "-exportcert",
                "-alias",
                name,
                "-file",
                directory.resolve(name + ".cer").toString());
    }

    /**
     * Replaces a key's certificate by an expired one signed by the CA: a directly trusted certificate never expires.
     */
    private static void expire(String name) throws Exception {
        String request = directory.resolve(name + ".csr").toString();
        String signed = directory.resolve(name + ".signed").toString();
        keytool(name, "-certreq", "-alias", name, "-file", request);
        keytool(
                "ca",
                "-gencert",
                "-alias",
                "ca",
                "-infile",
                request,
                "-outfile",
                signed,
                "-startdate",
                "-20d",
                "-validity",
                "10",
                "-ext",
                "SAN=ip:127.0.0.1");
        keytool(
                name,
                "-importcert",
                "-noprompt",
                "-alias",
                "ca",
                "-file",
                directory.resolve("ca.cer").toString());
        keytool(name, "-importcert", "-noprompt", "-alias", name, "-file", signed);
    }

    private static void trust(String name, String... certificates) throws Exception {
        for (String each : certificates) {
            String file = directory.resolve(each + ".cer").toString();
            keytool(name, "-importcert", "-noprompt", "-alias", each, "-file", file);
        }
    }

    private static void keytool(String store, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString()));
        command.addAll(List.of(arguments));
        command.addAll(List.of("-keystore", store(store), "-storepass", PASSWORD, "-storetype", "PKCS12"));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(said).isZero();
    }

    private static String login(String user, String password) {
        return "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + user + "\" password=\""
                + password + "\"";
    }

    private static Map<String, Object> client(String address, String protocol, String... more) {
        Map<String, Object> client = new HashMap<>(Map.of("bootstrap.servers", address, "security.protocol", protocol));
        for (int i = 0; i < more.length; i += 2) {
            client.put(more[i], more[i + 1]);
        }
        return client;
    }

    private Map<String, Object> tls(String listener, String protocol, String trusted, String... more) {
        Map<String, Object> client = client(broker.address(listener), protocol, more);
        client.put("ssl.truststore.location", store(trusted));
        client.putIfAbsent("ssl.truststore.password", PASSWORD);
        client.put("ssl.truststore.type", "PKCS12");
        return client;
    }

    private static void reach(Map<String, Object> client) {
        try (TopicAdministration administration = new TopicAdministration(client, CONFIG)) {
            administration.requireReachable();
        }
    }

    /** Nothing that waiting would mend, so that a role ends at once. */
    private static void assertRefused(Map<String, Object> client, String begin, String... parts) {
        var refused = assertThatThrownBy(() -> reach(client))
                .isExactlyInstanceOf(LogSetupException.class)
                .hasMessageStartingWith(begin);
        for (String part : parts) {
            refused.hasMessageContaining(part);
        }
    }

    @Test
    void shouldReachEachListenerWithTheSettingsThatItWants() {
        reach(client(broker.address("PLAIN"), "PLAINTEXT"));
        reach(tls("TLS", "SSL", "trusted"));
        reach(tls(
                "MUTUAL",
                "SSL",
                "trusted",
                "ssl.keystore.location",
                store("broker"),
                "ssl.keystore.password",
                PASSWORD,
                "ssl.keystore.type",
                "PKCS12"));
        reach(tls(
                "LOGIN",
                "SASL_SSL",
                "trusted",
                "sasl.mechanism",
                "PLAIN",
                "sasl.jaas.config",
                login("reader", "reader") + ";"));
    }

    @Test
    void shouldSayThatTheLoginIsRefused() {
        String wrong = login("reader", "wrong") + ";";
        assertRefused(
                tls("LOGIN", "SASL_SSL", "trusted", "sasl.mechanism", "PLAIN", "sasl.jaas.config", wrong),
                "no login at bootstrap_servers=" + broker.address("LOGIN")
                        + ": the broker refuses user or password (Authentication failed",
                "; correct sasl.jaas.config");
        assertRefused(
                tls(
                        "LOGIN",
                        "SASL_SSL",
                        "trusted",
                        "sasl.mechanism",
                        "SCRAM-SHA-512",
                        "sasl.jaas.config",
                        "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"a\" password=\"b\";"),
                "no login at bootstrap_servers=" + broker.address("LOGIN")
                        + ": the broker does not take sasl.mechanism=SCRAM-SHA-512",
                "[PLAIN]");
        assertRefused(
                client(broker.address("PLAIN"), "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN", "sasl.jaas.config", wrong),
                "no login at bootstrap_servers=" + broker.address("PLAIN") + ": the listener takes none");
    }

    @Test
    void shouldSayThatTheListenerSpeaksSomethingElseThanTheClient() {
        assertRefused(
                client(broker.address("TLS"), "PLAINTEXT"),
                "the broker at " + broker.address("TLS")
                        + " expects TLS, and security.protocol is PLAINTEXT; set it to SSL, or SASL_SSL with a login");
        assertRefused(
                tls("PLAIN", "SSL", "trusted"),
                "the broker at " + broker.address("PLAIN")
                        + " speaks no TLS, and security.protocol is SSL; set it to PLAINTEXT, or give the address of");
        String sasl = String.valueOf(broker.client("reader").get("bootstrap.servers"));
        assertRefused(
                client(sasl, "PLAINTEXT"),
                "the broker at " + sasl
                        + " expects a login ([PLAIN]), and security.protocol is PLAINTEXT; set it to SASL_PLAINTEXT");
    }

    @Test
    void shouldTellWhatIsWrongWithACertificate() {
        String begin = "no TLS connection to bootstrap_servers=";
        assertRefused(
                tls("TLS", "SSL", "other"),
                begin + broker.address("TLS") + ": the broker's certificate is signed by a CA that the trust store "
                        + store("other") + " does not hold");
        assertRefused(
                client(broker.address("TLS"), "SSL"),
                begin + broker.address("TLS")
                        + ": the broker's certificate is signed by a CA that Java's own trust store does not hold");
        assertRefused(
                tls("OLD", "SSL", "trusted"),
                begin + broker.address("OLD") + ": the broker's certificate has expired (NotAfter: ",
                "; renew it on the broker");
        Map<String, Object> byName = tls("TLS", "SSL", "trusted");
        String named = broker.address("TLS").replace("127.0.0.1", "localhost");
        byName.put("bootstrap.servers", named);
        assertRefused(byName, begin + named + ": the broker's certificate is for another host");
        assertRefused(
                tls("MUTUAL", "SSL", "trusted"),
                begin + broker.address("MUTUAL") + ": the broker does not accept the certificate of this client",
                "ssl.keystore.location");
    }

    @Test
    void shouldSayThatATrustStoreIsAbsentOrItsPasswordWrong() {
        String begin = "cannot connect to bootstrap_servers=" + broker.address("TLS") + ": ";
        assertRefused(
                tls("TLS", "SSL", "absent"),
                begin + "the trust store or key store " + store("absent") + " does not exist");
        assertRefused(
                tls("TLS", "SSL", "trusted", "ssl.truststore.password", "wrong"),
                begin + "the password of the trust store or key store " + store("trusted") + " is wrong");
        assertRefused(
                client(
                        broker.address("PLAIN"),
                        "SASL_PLAINTEXT",
                        "sasl.mechanism",
                        "PLAIN",
                        "sasl.jaas.config",
                        "no.such.LoginModule required;"),
                "cannot connect to bootstrap_servers=" + broker.address("PLAIN") + ": sasl.jaas.config cannot be used");
    }

    @Test
    void shouldWaitForWhatMayComeUp() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 8, InetAddress.getByName("127.0.0.1"))) {
            String address = "127.0.0.1:" + silent.getLocalPort();
            assertThatThrownBy(() -> reach(client(address, "PLAINTEXT")))
                    .isInstanceOf(BrokerUnavailableException.class)
                    .hasMessageStartingWith("the cluster at bootstrap_servers=" + address
                            + " did not answer within timeout_ms=4000, and what listens at " + address
                            + " answers as no broker");
        }
    }
}
