package dev.millrace.docs.reference;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The gateway's API conformance: the cases that its test runs with the official clients. */
final class ConformancePage {
    private static final Path CLIENT = Path.of("..", "gateway", "src", "test", "client");
    private static final Pattern CASE =
            Pattern.compile("^(openai|anthropic)\\('([a-z0-9-]+)', '((?:[^'\\\\]|\\\\.)*)',$", Pattern.MULTILINE);

    private ConformancePage() {}

    static String text() throws IOException {
        JsonNode clients = new ObjectMapper()
                .readTree(CLIENT.resolve("package.json").toFile())
                .get("dependencies");
        String script = Files.readString(CLIENT.resolve("conformance.mjs"));
        return "# Gateway conformance\n\nWhat the [gateway](../how-to/agents.md) claims of the APIs it serves. "
                + "`GatewayConformanceIT` checks each row with the unmodified npm\nclient against a gateway on a real broker; "
                + "a scripted engine stands in for the policy.\n\n```\n(cd gateway/src/test/client && npm ci)\n"
                + "./mvnw -pl gateway -am test -Dtest=GatewayConformanceIT -Dsurefire.failIfNoSpecifiedTests=false\n```\n"
                + "\nWithout `node_modules` the test is skipped. `.ci/run` installs them where npm can.\n"
                + section("OpenAI: Chat Completions, Responses", "openai", "openai", clients, script)
                + section("Anthropic: Messages", "anthropic", "@anthropic-ai/sdk", clients, script);
    }

    private static String section(String title, String api, String client, JsonNode clients, String script) {
        StringBuilder section = new StringBuilder("\n## " + title + "\n\nChecked with `" + client + "` "
                + clients.get(client).asText() + ".\n\n" + Tables.head("case", "claim"));
        for (Matcher each = CASE.matcher(script); each.find(); ) {
            if (each.group(1).equals(api)) {
                section.append(
                        Tables.row(Tables.code(each.group(2)), each.group(3).replace("\\'", "'")));
            }
        }
        return section.toString();
    }
}
