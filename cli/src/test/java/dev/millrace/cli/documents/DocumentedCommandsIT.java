package dev.millrace.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.cli.start.PackagedCommand;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.rights.SecuredBroker;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every command in a block of a page, then every one with options in its sentences, is executed, page by page, by one shell in a folder that looks like a fresh clone with a run,
 * its archive and a small model in it. Models and counts are made small, and {@code kafka:9092} is a broker of the test; all else is as
 * written. What differs, and what is not executed, is in {@code documented-commands.yaml}. The tutorials have a test of their own.
 */
@Tag("smoke")
class DocumentedCommandsIT {
    private static final int PAGES_AT_ONCE = 3;
    private static final int VERSIONS = 62; // pages name versions up to 60
    private static final long LIMIT_MINUTES = 60;
    private static final List<String> LINKED = List.of("load-tests", "docs", "corrections", "cli", "view");
    private static final List<String> COPIED = List.of("infra/examples", "clients/python");
    private static final Path TOKENIZER = Path.of("..", "policy", "src", "test", "resources", "tiny", "tokenizer.json");
    private static final String SESSION = "$(grep -oE '\"session\":\"[^\"]+' answers | tail -n 1 | cut -d '\"' -f 4)";
    private static final Pattern BACKGROUND = Pattern.compile("(?<![&>])&(?!&)");
    private static final Pattern TRAIN = Pattern.compile("\\./millrace train(?= |$)[^;>|]*");

    private static final String BATCH =
            "{\"id\":\"a\",\"mask\":[1,1],\"behavior_log_probs\":[-2.0,-1.0],\"proximal_log_probs\":[-1.9,-1.1]}\n";
    private static final String CERTIFICATE =
            "cd \"$1\"; cp -a infra/examples/records/dump dump; cp -a dump records; openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out chain.pem -days 2 -subj /CN=gateway.example 2>&1";

    private static final JsonNode LIST =
            ConfigTree.read(Path.of("src", "test", "resources", "documented-commands.yaml"));
    private static final Map<Path, Future<?>> EXECUTED = new HashMap<>();
    /** What leaves nothing that a later command of its page needs is executed once for all pages. */
    private static final Pattern REPEATABLE =
            Pattern.compile("^\\./millrace (train|ledger|trace|doctor|config|conformance) ?");

    private static final Set<String> SEEN = ConcurrentHashMap.newKeySet();
    private static final Pattern PORT = Pattern.compile("\\b807\\d\\b");
    private static final Map<String, Integer> PORTS = new ConcurrentHashMap<>();
    private static final Map<String, String> PYTHONS = new ConcurrentHashMap<>();
    private static final Set<String> USED = new HashSet<>();

    @TempDir
    static Path folder;

    private static EmbeddedBroker broker;
    private static ExecutorService atOnce;

    @BeforeAll
    static void startAllPages() throws Exception {
        broker = EmbeddedBroker.start(folder.resolve("broker"));
        prepareClone();
        atOnce = Executors.newFixedThreadPool(PAGES_AT_ONCE);
        for (Path page : pages()) {
            EXECUTED.put(page, atOnce.submit(() -> {
                execute(page);
                return null;
            }));
        }
    }

    @AfterAll
    static void stop() {
        atOnce.shutdownNow();
        broker.close();
    }

    static List<Path> pages() throws IOException {
        return DocumentPages.all().stream()
                .filter(page -> !page.startsWith(DocumentPages.ROOT.resolve("docs/tutorials")))
                .filter(page -> !DocumentPages.blocks(page).isEmpty()
                        || !DocumentPages.inSentences(page).isEmpty())
                .toList();
    }

    @ParameterizedTest
    @MethodSource("pages")
    void shouldExecuteEveryCommandOfThePage(Path page) {
        assertThat(EXECUTED.get(page)).succeedsWithin(3, TimeUnit.HOURS);
    }

    @Test
    void shouldListNoCommandThatIsNotDocumented() {
        for (Future<?> executed : EXECUTED.values()) {
            assertThat(executed).succeedsWithin(3, TimeUnit.HOURS);
        }
        Set<String> listed = new HashSet<>();
        LIST.forEach(
                part -> part.forEach(entry -> listed.add(entry.path("command").asText())));
        assertThat(USED).isEqualTo(listed);
    }

    private static void execute(Path page) throws Exception {
        String name = DocumentPages.ROOT
                .relativize(page)
                .toString()
                .replaceAll("(/README)?\\.md$", "")
                .replaceAll("\\W+", "-");
        StringBuilder script = new StringBuilder();
        int commands = 0;
        for (List<String> block : DocumentPages.blocks(page)) {
            for (String line : block) {
                for (String command : BACKGROUND.split(line)) {
                    commands += append(script, small(command.strip(), name));
                }
            }
            script.append("all_ready\n");
        }
        for (String command : DocumentPages.inSentences(page)) {
            commands += append(script, small(command, name));
        }
        script.append("all_ready\n");
        if (commands == 0) {
            return;
        }
        Path work = folder.resolve(name);
        run(page.toString(), "cp -a \"$1\" \"$2\"", folder.resolve("clone").toString(), work.toString());
        if (script.indexOf(" --to my-run.archive") >= 0) {
            run(page.toString(), "rm -r \"$1\"", work.resolve("my-run.archive").toString());
        }
        for (Matcher file = Pattern.compile("(\\w+)\\.yaml").matcher(script); file.find(); ) {
            writeConfiguration(page, work, file.group());
        }
        for (Map.Entry<String, Integer> port : PORTS.entrySet()) {
            if (port.getKey().startsWith(name + ":")) {
                String written = port.getKey().substring(name.length() + 1);
                String sed = "sed -i \"s/:$1/:$2/\" \"$3\"/infra/examples/*/*.yaml";
                run(page.toString(), sed, written, port.getValue().toString(), work.toString());
            }
        }
        run(
                page.toString(),
                "cd \"$1\"; PATH=\"" + python("confluent_kafka, numpy, wheel") + "$PATH\"; " + FUNCTIONS + script
                        + "end_all\n",
                work.toString());
    }

    /** A configuration file that the page shows and then uses. */
    private static void writeConfiguration(Path page, Path work, String file) throws IOException {
        Matcher shown = Pattern.compile("```yaml\\n(.*?)```", Pattern.DOTALL).matcher(DocumentPages.text(page));
        if (!Files.exists(work.resolve(file)) && shown.find()) {
            Files.writeString(work.resolve(file), shown.group(1));
        }
    }

    private static int append(StringBuilder script, String command) {
        if (command.isEmpty()
                || listed("skipped", command) != null
                || REPEATABLE.matcher(command).find() && !SEEN.add(command)) {
            return 0;
        }
        String quoted = "'" + command.replace("'", "'\\''") + "'";
        JsonNode serving = listed("serving", command);
        JsonNode exits = listed("exits", command);
        script.append("echo ").append(quoted).append(" | sed 's/^/+ /'\n");
        if (serving != null) {
            script.append("serve '")
                    .append(serving.path("says").asText())
                    .append("' env ")
                    .append(command)
                    .append("\n");
        } else if (exits != null) {
            script.append("status=0; ")
                    .append(command)
                    .append(" || status=$?; [[ $status =~ ^(")
                    .append(exits.path("with").asText())
                    .append(")$ ]]\n");
        } else if (command.startsWith("curl ")) { // a gateway has no session while the first weights are on their way
            script.append("until ")
                    .append(command)
                    .append(
                            " >answer && ! grep -q '\"error\"' answer; do cat answer; sleep 1; done; tee -a answers <answer; echo\n");
        } else {
            script.append(command).append("\n");
        }
        return 1;
    }

    private static JsonNode listed(String part, String command) {
        for (JsonNode entry : LIST.path(part)) {
            String pattern = entry.path("command").asText();
            if (Pattern.compile(pattern).matcher(command).find()) {
                synchronized (USED) {
                    USED.add(pattern);
                }
                if (!entry.has("lacking")
                        || python(entry.path("lacking").asText()).isEmpty()) {
                    return entry;
                }
            }
        }
        return null;
    }

    /** The folder of a Python that can import the modules; empty where there is none. */
    private static String python(String modules) {
        return PYTHONS.computeIfAbsent(modules, missing -> {
            for (String folder : System.getenv("PATH").split(":")) {
                try {
                    Process probe = new ProcessBuilder(folder + "/python3", "-c", "import " + missing)
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start();
                    if (probe.waitFor(2, TimeUnit.MINUTES) && probe.exitValue() == 0) {
                        return folder + ":";
                    }
                } catch (IOException | InterruptedException e) {
                    continue; // there is none in this folder
                }
            }
            return "";
        });
    }

    /** The command with what is small, and what is here, in place of what is a reader's own. */
    private static String small(String command, String page) {
        String here = command.replace("kafka:9092", broker.bootstrapServers())
                .replace("run.id=my-run", "run.id=" + (command.contains("preflight") ? page : runOf(page)))
                .replace("/var/tmp/", "state/" + page)
                .replaceAll("\\bDIR\\b|stories260k", "models/my-model")
                .replace("http://verifier:", "http://127.0.0.1:")
                .replace(" /tmp/", " state/")
                .replace("millrace view", "millrace view --port 0")
                .replace("millrace registry", "millrace registry --port 0")
                .replace("train --view", "train --view 0")
                .replace("in 1 2 3 4 5;", "in 1;")
                .replace("--seeds 3", "--seeds 2")
                .replace(
                        "millrace gateway ",
                        "millrace gateway --set gateway.port=0 --set generator.id=gateway-"
                                + Math.abs(command.hashCode()) + " ")
                .replace(" my-run ", " " + runOf(page) + " ")
                .replace("s2-17-0-...", SESSION);
        here = PORT.matcher(here)
                .replaceAll(port -> String.valueOf(
                        PORTS.computeIfAbsent(page + ":" + port.group(), any -> SecuredBroker.freePort())));
        Matcher train = TRAIN.matcher(here);
        StringBuilder small = new StringBuilder();
        while (train.find()) {
            String words = train.group()
                    .replaceAll(" --max-steps \\d+| --plain\\b", "")
                    .stripTrailing();
            boolean resumes = words.contains("--run-dir runs/my-run");
            String first = resumes
                    ? "train --plain --max-steps " + (VERSIONS + 2)
                    : "train --plain --max-steps 2 --set topology.batch.sequences=32 --set admission.batch_sequences=32";
            train.appendReplacement(
                    small,
                    Matcher.quoteReplacement(words.replaceFirst("train", first))
                            + train.group()
                                    .substring(train.group().stripTrailing().length()));
        }
        return train.appendTail(small).toString();
    }

    /** Pages that start a learner begin a run; others ask about the one that is there. */
    private static String runOf(String page) {
        return Set.of("docs-how-to-several-machines", "docs-how-to-own-generator", "docs-how-to-own-trainer")
                        .contains(page)
                ? page
                : "my-run";
    }

    private static final String FUNCTIONS = """
            set -meuo pipefail
            exec </dev/null 2>&1
            says=(); pids=()
            trap 'for p in "${pids[@]}"; do kill -KILL -- "-$p" 2>/dev/null || true; done; tail -n 30 served-* 2>/dev/null || true' ERR
            serve() { local text=$1; shift; says+=("$text"); "$@" >"served-${#says[@]}" 2>&1 & pids+=($!); }
            all_ready() {
              local i
              for i in "${!says[@]}"; do
                until [ -z "${says[i]}" ] || grep -qE -- "${says[i]}" "served-$((i + 1))"; do
                  kill -0 "${pids[i]}" || { echo "ended before it said '${says[i]}':"; cat "served-$((i + 1))"; return 1; }
                  sleep 0.2
                done
              done
            }
            end_all() {
              local p status
              for p in "${pids[@]}"; do kill -TERM -- "-$p" || true; done
              for p in "${pids[@]}"; do
                status=0; wait "$p" || status=$?
                case $status in 0 | 130 | 143) ;; *) echo "exit status $status after SIGTERM:"; tail -n 30 served-*; return 1 ;; esac
              done
            }
            """;

    /** A checkpoint whose words are mostly numbers, prompts that one of them answers, a run of it on a log of its own and on the broker. */
    private static void prepareClone() throws Exception {
        Path clone = Files.createDirectories(folder.resolve("clone"));
        for (String linked : LINKED) {
            Files.createSymbolicLink(clone.resolve(linked), DocumentPages.ROOT.resolve(linked));
        }
        for (String copied : COPIED) {
            Files.createDirectories(clone.resolve(copied).getParent());
            run(
                    copied,
                    "cp -a \"$1\" \"$2\"",
                    DocumentPages.ROOT.resolve(copied).toString(),
                    clone.resolve(copied).toString());
        }
        PackagedCommand.writeTo(clone);

        Path model = clone.resolve("models/my-model");
        new CheckpointDirectory(model)
                .save(Weights.random(new DecoderShape(30, 32, 2, 4, 2, 8, 48, 256, 10_000, 1e-5, true, false), 5));
        String tokenizer = Files.readString(TOKENIZER);
        List<String> replaced =
                List.of("once", "upon", "time", "there", "little", "girl", "dog", "ran", "park", "said");
        for (int i = 0; i < replaced.size(); i++) {
            tokenizer = tokenizer.replace("\"" + replaced.get(i) + "\"", "\"" + i + "\"");
        }
        Files.writeString(model.resolve("tokenizer.json"), tokenizer);
        Files.writeString(
                model.resolve("chat_template.jinja"),
                "{{ bos_token }}{% for m in messages %} {{ m.role }} : {{ m.content }} {% endfor %} ?");
        Files.writeString(model.resolve("tokenizer_config.json"), "{\"bos_token\": \"<s>\"}");
        Files.writeString(model.resolve("generation_config.json"), "{\"eos_token_id\": 1}");
        String prompts = "{\"prompt\": \"the sun\", \"answer\": 3}\n{\"prompt\": \"a red ball\", \"answer\": 4}\n";
        Files.writeString(clone.resolve("prompts.jsonl"), prompts);
        Files.writeString(clone.resolve("math.jsonl"), "{\"prompt\": \"3\"}\n{\"prompt\": \"4\"}\n");
        Files.writeString(
                clone.resolve("other.jsonl"), prompts.replace("the", "who").replace("red", "and"));
        Files.copy(clone.resolve("prompts.jsonl"), clone.resolve("train.jsonl"));
        Files.copy(clone.resolve("other.jsonl"), clone.resolve("held-out.jsonl"));
        Files.writeString(clone.resolve("my.yaml"), "run: {patience_seconds: 90}\n");
        Files.writeString(clone.resolve("batch.jsonl"), BATCH);
        Files.copy(clone.resolve("infra/examples/verifier/verify.py"), clone.resolve("verify.py"));
        run("certificate", CERTIFICATE, clone.toString());
        StringBuilder verdicts = new StringBuilder();
        for (int prompt = 0; prompt < 4 * VERSIONS; prompt++) {
            for (int sample = 0; sample < 8; sample++) {
                verdicts.append("{\"rollout_id\": \"0-")
                        .append(prompt)
                        .append("/")
                        .append(sample)
                        .append("\", \"reward\": ")
                        .append((prompt + sample) % 2)
                        .append("}\n");
            }
        }
        Files.writeString(clone.resolve("verdicts.jsonl"), verdicts);
        String train =
                "cd \"$1\"; ./millrace train --plain --model models/my-model --data prompts.jsonl --eval-data other.jsonl --reward numeric --max-steps "
                        + VERSIONS
                        + " --set weights.keep_versions=0 --set goal.mean_reward=2 --set admission.batch_sequences=16"
                        + " --set topology.batch.sequences=16 --set task.response_tokens=8 --set evaluation.every_versions=20";
        run(
                "the run",
                train + " --run-dir runs/my-run; ./millrace export --run-dir runs/my-run --to my-run.archive",
                clone.toString());
        run(
                "the run with adapters",
                "cd \"$1\"; ./millrace train --plain --model models/my-model --data prompts.jsonl --reward numeric --max-steps 2"
                        + " --set learner.lora.rank=2 --set task.response_tokens=8 --run-dir runs/my-adapter",
                clone.toString());
        run(
                "the run on the broker",
                train + " --run-dir on-the-broker --set run.id=my-run --bootstrap-servers " + broker.bootstrapServers(),
                clone.toString());
    }

    private static void run(String what, String script, String... arguments) throws IOException, InterruptedException {
        List<String> line = new ArrayList<>(List.of("bash", "-ec", script, "bash"));
        line.addAll(List.of(arguments));
        Path printed = Files.createTempFile(folder, "printed", ".txt");
        Process shell = new ProcessBuilder(line)
                .redirectErrorStream(true)
                .redirectOutput(printed.toFile())
                .start();
        boolean ended = shell.waitFor(LIMIT_MINUTES, TimeUnit.MINUTES);
        if (!ended) {
            shell.descendants().forEach(ProcessHandle::destroyForcibly);
            shell.destroyForcibly();
        }
        String told = what + "\nprinted:\n" + Files.readString(printed);
        assertThat(ended).as(told).isTrue();
        assertThat(shell.exitValue()).as(told).isZero();
    }
}
