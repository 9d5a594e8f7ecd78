package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.runtime.rights.SecuredBroker;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class AclsCheckIT {
    private static final String USER = "sampler";
    private static final Map<String, ResourceType> RESOURCES = Map.of(
            "--topic",
            ResourceType.TOPIC,
            "--group",
            ResourceType.GROUP,
            "--transactional-id",
            ResourceType.TRANSACTIONAL_ID);

    @TempDir(cleanup = CleanupMode.NEVER)
    private Path folder;

    private record Answer(int status, List<String> lines) {}

    @Test
    void shouldPrintCommandsThatGrantWhatTheAccountLacks() throws Exception {
        try (SecuredBroker broker = new SecuredBroker(folder.resolve("broker"), USER);
                Admin admin = Admin.create(broker.client("admin"))) {
            Answer lacking = check(broker);
            assertThat(lacking.status).as(lacking.lines.toString()).isEqualTo(4);
            assertThat(lacking.lines)
                    .contains("missing  READ and DESCRIBE_CONFIGS on topics millrace.r.*")
                    .noneMatch(line -> line.startsWith("ok "));
            List<AclBinding> printed = new ArrayList<>();
            lacking.lines.stream()
                    .filter(line -> line.startsWith("kafka-acls "))
                    .forEach(line -> printed.addAll(acls(line)));
            admin.createAcls(printed).all().get();
            Answer granted = check(broker);
            for (long until = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
                    granted.status != 0 && System.nanoTime() < until;
                    granted = check(broker)) {
                TimeUnit.MILLISECONDS.sleep(100);
            }
            assertThat(granted.status).as(granted.lines.toString()).isZero();
            assertThat(granted.lines)
                    .contains("ok       READ on groups millrace.r.generator*")
                    .anyMatch(line -> line.startsWith("unknown  WRITE on topics millrace.r.rollouts, "))
                    .noneMatch(line -> line.startsWith("missing "));
        }
    }

    private Answer check(SecuredBroker broker) throws Exception {
        StringBuilder yaml = new StringBuilder("kafka:\n");
        broker.client(USER).forEach((name, value) -> {
            if (!name.equals("bootstrap.servers")) {
                yaml.append("  ").append(name).append(": '").append(value).append("'\n");
            }
        });
        Path config = Files.writeString(folder.resolve("client.yaml"), yaml);
        StringWriter out = new StringWriter();
        int status = Main.commandLine()
                .setOut(new PrintWriter(out))
                .execute(
                        "acls",
                        "--run",
                        "r",
                        "--role",
                        "generator",
                        "--check",
                        "--config",
                        config.toString(),
                        "--bootstrap-servers",
                        String.valueOf(broker.client(USER).get("bootstrap.servers")));
        return new Answer(status, out.toString().lines().toList());
    }

    /** What the tool of that name makes of its options. */
    private static List<AclBinding> acls(String command) {
        List<String> words = Arrays.asList(command.split(" "));
        PatternType pattern = words.contains("--resource-pattern-type") ? PatternType.PREFIXED : PatternType.LITERAL;
        List<AclBinding> acls = new ArrayList<>();
        for (int resource = 0; resource < words.size(); resource++) {
            if (!RESOURCES.containsKey(words.get(resource))) {
                continue;
            }
            for (int operation = 0; operation < words.size(); operation++) {
                if (words.get(operation).equals("--operation")) {
                    acls.add(new AclBinding(
                            new ResourcePattern(RESOURCES.get(words.get(resource)), words.get(resource + 1), pattern),
                            new AccessControlEntry(
                                    "User:" + USER,
                                    "*",
                                    AclOperation.valueOf(words.get(operation + 1)
                                            .replaceAll("(?<=[a-z])(?=[A-Z])", "_")
                                            .toUpperCase(Locale.ROOT)),
                                    AclPermissionType.ALLOW)));
                }
            }
        }
        return acls;
    }
}
