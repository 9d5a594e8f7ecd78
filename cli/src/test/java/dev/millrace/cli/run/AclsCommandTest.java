package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import dev.millrace.cli.Main;
import dev.millrace.log.run.RoleRights;
import dev.millrace.schemas.run.RunTopics;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class AclsCommandTest {
    private static final Path PAGE = Path.of("..", "docs", "how-to", "secured-cluster.md");
    private static final String SHOWN = "./millrace acls --run my-run --bootstrap-servers kafka:9092 --role ";

    private static String printed(int status, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        assertThat(Main.commandLine()
                        .setOut(new PrintWriter(out))
                        .setErr(new PrintWriter(err))
                        .execute(arguments))
                .as(err.toString())
                .isEqualTo(status);
        return status == 0 ? out.toString() : err.toString();
    }

    @Test
    void shouldPrintWhatTheDocumentsShow() throws Exception {
        String page = Files.readString(PAGE);
        int command = page.indexOf(SHOWN);
        String typed = page.substring(command, page.indexOf('\n', command));
        int output = page.indexOf("```text\n", command) + "```text\n".length();
        assertThat(page.substring(output, page.indexOf("```", output)))
                .isEqualTo(printed(0, typed.replace("./millrace ", "").split(" ")));
    }

    @Test
    void shouldNameEveryRoleWithAnAccountOfItsOwn() {
        assertThat(printed(0, "acls", "--run", "r").lines())
                .filteredOn(line -> !line.startsWith("#"))
                .allSatisfy(line -> assertThat(line)
                        .startsWith("kafka-acls --bootstrap-server kafka:9092 --add --allow-principal User:"))
                .extracting(line -> line.replaceAll(".* User:(\\S+) .*", "$1"))
                .containsOnly(Arrays.stream(RoleRights.values())
                        .map(RoleRights::lowerCase)
                        .toArray(String[]::new));
    }

    @Test
    void shouldSayInTheDocumentsWhatEachAccountIsFor() throws Exception {
        String page = Files.readString(PAGE);
        assertThat(page.substring(page.indexOf("| role | account of |"))
                        .lines()
                        .takeWhile(line -> line.startsWith("|"))
                        .skip(2)
                        .map(line -> line.split("\\|")[1])
                        .flatMap(cell -> Arrays.stream(cell.split(",")))
                        .map(String::strip))
                .containsExactlyInAnyOrder(Arrays.stream(RoleRights.values())
                        .map(role -> "`" + role.lowerCase() + "`")
                        .toArray(String[]::new));
    }

    @Test
    void shouldGiveTheScorersOfOtherPoliciesTheSameRightsUnderTheirNames() {
        RunTopics topics = new RunTopics("millrace.r.");
        assertThat(RoleRights.TEACHER.of(topics, "_schemas").toString())
                .isEqualTo(
                        RoleRights.REFERENCE.of(topics, "_schemas").toString().replace("reference", "teacher"));
    }

    @Test
    void shouldPrintTheSameForStrimzi() throws Exception {
        String yaml = printed(0, "acls", "--run", "r", "--role", "learner,reader", "--strimzi", "my-cluster");
        ObjectMapper mapper = new ObjectMapper(new YAMLFactory());
        List<JsonNode> users;
        try (MappingIterator<JsonNode> each = mapper.readerFor(JsonNode.class).readValues(yaml)) {
            users = each.readAll();
        }
        assertThat(users).extracting(user -> user.at("/metadata/name").asText()).containsExactly("learner", "reader");
        JsonNode learner = users.get(0);
        assertThat(learner.at("/apiVersion").asText()).isEqualTo("kafka.strimzi.io/v1");
        assertThat(learner.at("/metadata/labels/strimzi.io~1cluster").asText()).isEqualTo("my-cluster");
        List<String> acls = new ArrayList<>();
        learner.at("/spec/authorization/acls")
                .forEach(acl -> acl.get("operations")
                        .forEach(operation -> acls.add(acl.at("/resource/type").asText() + " "
                                + acl.at("/resource/patternType").asText() + " "
                                + acl.at("/resource/name").asText() + " " + operation.asText())));
        assertThat(acls)
                .hasSameSizeAs(RoleRights.LEARNER.of(new RunTopics("millrace.r."), "_schemas").stream()
                        .flatMap(right -> right.single().stream())
                        .collect(Collectors.toSet()))
                .contains(
                        "topic prefix millrace.r. DescribeConfigs",
                        "topic literal millrace.r.weights Delete",
                        "topic literal _schemas Read",
                        "group prefix millrace.r.learner Read",
                        "transactionalId prefix millrace.r.learner Write");
    }

    @Test
    void shouldLeaveSchemasToARegistry() {
        String[] given = {"acls", "--run", "r", "--set", "run.schema_registry_url=http://registry:8081"};
        assertThat(printed(0, given)).doesNotContain("_schemas");
    }

    @Test
    void shouldRefuseWhatItCannotDo() {
        assertThat(printed(2, "acls")).contains("give --run ID");
        assertThat(printed(2, "acls", "--run", "r", "--check")).contains("--role ROLE[,ROLE]");
        assertThat(printed(2, "acls", "--run", "r", "--check", "--role", "reader"))
                .contains("--bootstrap-servers HOST:PORT");
        assertThat(printed(2, "acls", "--run", "r", "--check", "--role", "reader", "--principal", "User:a"))
                .contains("leave out --principal");
    }
}
