package dev.millrace.cli.start;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.infra.broker.EmbeddedBroker;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The archive as users have it: unpacked, read-only, started through a symbolic link from another folder. */
@Tag("smoke")
@Timeout(value = 30, unit = TimeUnit.MINUTES)
class DistributionIT {
    private static final Path TARGET = Path.of("target").toAbsolutePath();
    private static final double LARGEST_SHARE = 0.75;
    private static final Pattern FOREIGN =
            Pattern.compile("(?i).*((?<!dar)win|musl|freebsd|sunos|android|ppc|s390|riscv|aix|armv|\\.dsym|\\.dll).*");

    @TempDir
    static Path folder;

    private static Path home;

    @BeforeAll
    static void unpack() throws Exception {
        Path archive = archive(".tar.gz");
        assertThat(run(folder, "tar", "-xzf", archive.toString()).status()).isZero();
        home = folder.resolve(archive.getFileName().toString().replace(".tar.gz", ""));
        assertThat(run(folder, "chmod", "-R", "a-w", home.toString()).status()).isZero();
    }

    private static Path archive(String suffix) throws IOException {
        try (Stream<Path> files = Files.list(TARGET)) {
            List<Path> found = files.filter(
                            file -> file.getFileName().toString().matches("millrace-[0-9].*" + Pattern.quote(suffix)))
                    .toList();
            assertThat(found).as("archives in %s", TARGET).hasSize(1);
            return found.get(0);
        }
    }

    @Test
    void shouldHoldTheSameFilesInBothArchives() throws IOException {
        Set<String> zipped;
        try (ZipFile zip = new ZipFile(archive(".zip").toFile())) {
            zipped = zip.stream()
                    .filter(entry -> !entry.isDirectory())
                    .map(entry -> entry.getName())
                    .collect(Collectors.toCollection(TreeSet::new));
        }
        assertThat(sizes(home).keySet().stream().map(file -> home.getFileName() + "/" + file))
                .containsExactlyElementsOf(zipped)
                .contains(
                        home.getFileName() + "/bin/millrace",
                        home.getFileName() + "/LICENSE",
                        home.getFileName() + "/NOTICE",
                        home.getFileName() + "/README.md",
                        home.getFileName() + "/config/millrace.yaml");
    }

    /** Annotations for compilers are resolved and not shipped. */
    @Test
    void shouldNameEveryJarInItsBillOfMaterials() throws IOException {
        JsonNode bill =
                new ObjectMapper().readTree(home.resolve("sbom.cdx.json").toFile());
        Set<String> named = new TreeSet<>(Set.of(jar(bill.at("/metadata/component"))));
        bill.path("components").forEach(part -> named.add(jar(part)));
        Set<String> shipped = names(sizes(home.resolve("lib")), name -> true);

        assertThat(named).containsAll(shipped);
        named.removeAll(shipped);
        assertThat(named).allMatch(name -> name.startsWith("jspecify-"));
    }

    private static String jar(JsonNode part) {
        Matcher classifier = Pattern.compile("[?&]classifier=([^&]+)")
                .matcher(part.path("purl").asText());
        return part.path("name").asText() + "-" + part.path("version").asText()
                + (classifier.find() ? "-" + classifier.group(1) : "") + ".jar";
    }

    /**
     * The image has no base here: folders of this machine stand in for one, with a read-only root, for the image's user. That takes
     * the right to mount.
     */
    @Test
    void shouldTrainInTheImageWithoutRootOnAReadOnlyRoot() throws Exception {
        Path image = Files.createDirectories(folder.resolve("image"));
        assertThat(run(image, "tar", "-xf", TARGET.resolve("millrace-image.tar").toString())
                        .status())
                .isZero();
        ObjectMapper json = new ObjectMapper();
        JsonNode manifest =
                json.readTree(image.resolve("manifest.json").toFile()).path(0);
        JsonNode config = json.readTree(image.resolve("config.json").toFile()).path("config");
        Path root = Files.createDirectories(image.resolve("root"));
        for (JsonNode layer : manifest.path("Layers")) {
            assertThat(run(root, "tar", "-xzpf", image.resolve(layer.asText()).toString())
                            .status())
                    .isZero();
        }
        assertThat(manifest.path("RepoTags").toString()).contains("\"millrace:latest\"");
        assertThat(config.path("User").asText()).isEqualTo("10001:0");
        assertThat(config.path("WorkingDir").asText()).isEqualTo("/runs");
        assertThat(config.path("Entrypoint").toString()).isEqualTo("[\"/millrace/bin/millrace\"]");
        assertThat(sizes(root.resolve("millrace"))).isEqualTo(sizes(home));
        try (Stream<Path> files = Files.list(root)) {
            assertThat(files.map(file -> file.getFileName().toString())).containsExactlyInAnyOrder("millrace", "runs");
        }

        assumeThat(run(folder, "unshare", "--mount", "true").status())
                .as("the right to mount")
                .isZero();
        List<String> words = new ArrayList<>(List.of("unshare", "--mount", "bash", "-euc", """
                mount --make-rprivate /
                mount --bind "$0" "$0"
                cd "$0"
                mount --bind runs runs
                for folder in usr etc opt dev proc; do
                  mkdir $folder
                  mount --rbind /$folder $folder
                done
                for folder in bin lib lib64; do ln -s usr/$folder $folder; done
                mkdir tmp
                mount -t tmpfs tmpfs tmp
                mount -o remount,bind,ro "$0"
                if touch millrace/lib/some.jar; then exit 9; fi
                exec chroot . env -i PATH="$PATH" JAVA_HOME="$JAVA_HOME" "$@"
                """, root.toString()));
        config.path("Env").forEach(variable -> words.add(variable.asText()));
        words.addAll(List.of("setpriv", "--reuid=10001", "--regid=0", "--clear-groups", "--no-new-privs"));
        words.addAll(List.of("bash", "-c", "cd /runs && exec \"$0\" \"$@\""));
        config.path("Entrypoint").forEach(word -> words.add(word.asText()));
        words.addAll(List.of("train", "--plain", "--run-dir", "first", "--max-steps", "2"));
        words.addAll(List.of("--set", "admission.batch_sequences=32", "--set", "topology.batch.sequences=32"));
        Result result = run(folder, words.toArray(String[]::new));
        assertThat(result.status()).as(result.output()).isZero();
        assertThat(result.output()).containsPattern("steps +2 to version 2").contains("Read-only file system");
        assertThat(root.resolve("runs/first/summary.json")).exists();
        try (Stream<Path> files = Files.list(root.resolve("runs"))) {
            assertThat(files.map(file -> file.getFileName().toString()))
                    .as("caches, Java's own among them, and the run")
                    .filteredOn(name -> !name.startsWith("."))
                    .containsExactly("first");
        }
    }

    @Test
    void shouldHoldEveryJarOnceWithTheBrokerApartAndNoLibraryOfAnotherPlatform() throws IOException {
        Map<String, Long> built = sizes(TARGET.resolve("lib"));
        Map<String, Long> all = sizes(home.resolve("lib"));
        Set<String> broker = names(all, name -> name.startsWith("broker/"));
        Set<String> others = names(all, name -> !name.startsWith("broker/"));

        Set<String> together = new TreeSet<>(broker);
        together.addAll(others);
        assertThat(together).isEqualTo(built.keySet()).hasSize(all.size());
        assertThat(broker).anyMatch(name -> name.startsWith("kafka_")).anyMatch(name -> name.startsWith("scala-"));
        assertThat(others).noneMatch(name -> name.matches("(kafka_|kafka-(server|raft|metadata|storage)|scala).*"));
        assertThat(total(all)).isLessThan((long) (LARGEST_SHARE * total(built)));
        for (String jar : all.keySet()) {
            try (ZipFile entries = new ZipFile(home.resolve("lib").resolve(jar).toFile())) {
                assertThat(entries.stream()
                                .map(entry -> entry.getName())
                                .filter(name -> name.matches(".*\\.(so|dll|dylib|jnilib)")))
                        .as(jar)
                        .noneMatch(name -> jar.matches("(rocksdbjni|onnxruntime|tokenizers|sqlite|zstd|snappy|jna).*")
                                && FOREIGN.matcher(name).matches());
            }
        }
    }

    private static Set<String> names(Map<String, Long> jars, Predicate<String> wanted) {
        return jars.keySet().stream()
                .filter(wanted)
                .map(name -> name.substring(name.lastIndexOf('/') + 1))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static long total(Map<String, Long> sizes) {
        return sizes.values().stream().mapToLong(Long::longValue).sum();
    }

    /** As its README says, in a folder whose {@code bin} is a link to the archive's. */
    @Test
    void shouldDoWhatItsReadmeSaysAndWriteNothingIntoItsFolder() throws Exception {
        Path elsewhere = Files.createDirectories(folder.resolve("else where"));
        Files.createSymbolicLink(elsewhere.resolve("bin"), home.resolve("bin"));
        Map<String, Long> before = sizes(home);
        Matcher block =
                Pattern.compile("```\\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(home.resolve("README.md")));
        assertThat(block.find()).isTrue();
        String commands = block.group(1)
                .replace(
                        " train ",
                        " train --max-steps 2 --set admission.batch_sequences=32"
                                + " --set topology.batch.sequences=32 ");

        Result result = run(elsewhere, "bash", "-ec", commands);

        assertThat(result.status()).as(result.output()).isZero();
        assertThat(result.output())
                .containsPattern("Millrace [0-9].*, commit [0-9a-z]+")
                .containsPattern("Java (1[7-9]|[2-9]\\d)\\.")
                .containsPattern("Kafka clients [0-9]")
                .containsPattern("ONNX Runtime [0-9]")
                .containsPattern("steps +2 to version 2")
                .contains("It adds up.", "`learner.max_steps`");
        assertThat(elsewhere.resolve("runs/first/summary.json")).exists();
        assertThat(sizes(home)).isEqualTo(before);
    }

    /** Through a link to a copy without {@code lib/broker}, as on a machine that only runs roles. */
    @Test
    void shouldRunARoleWithoutTheBrokersFolderAndSayWhatIsMissingToTrain() throws Exception {
        Path copy = folder.resolve("roles");
        assertThat(run(folder, "cp", "-a", home.toString(), copy.toString()).status())
                .isZero();
        assertThat(run(folder, "bash", "-ec", "chmod -R u+w roles; rm -r roles/lib/broker")
                        .status())
                .isZero();
        Path link = Files.createSymbolicLink(folder.resolve("mr"), copy.resolve("bin/millrace"));

        Result train = run(folder, link.toString(), "train", "--plain", "--run-dir", "none");
        assertThat(train.status()).as(train.output()).isEqualTo(1);
        assertThat(train.output())
                .contains("millrace: cannot start a broker: Kafka's server is not on the class path; put the folder"
                        + " lib/broker of the distribution back, or use a cluster (run.bootstrap_servers)")
                .doesNotContain("at dev.millrace");

        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("broker"))) {
            String cluster = "--bootstrap-servers " + broker.bootstrapServers() + " --set run.id=roles";
            Result roles = run(
                    folder,
                    "bash",
                    "-uc",
                    "\"$0\" learn --first-version " + cluster + " || exit 1\n"
                            + "\"$0\" stream --state-dir state " + cluster + " >streamed 2>&1 &\n"
                            + "for _ in $(seq 300); do grep -q 'topology of run' streamed && break; sleep 0.2; done\n"
                            + "kill -TERM $!; wait $!; status=$?; cat streamed; exit $status",
                    link.toString());
            assertThat(roles.status()).as(roles.output()).isEqualTo(130);
            assertThat(roles.output()).contains("topology of run");
        }
    }

    @Test
    void shouldSayThatJavaIsMissingOrTooOld() throws Exception {
        String command = home.resolve("bin/millrace").toString();
        Path old = Files.createDirectories(folder.resolve("old/bin")).resolve("java");
        Files.writeString(old, "#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n");
        assertThat(old.toFile().setExecutable(true)).isTrue();

        Result missing = run(folder, "env", "JAVA_HOME=/nowhere", command, "--version");
        Result tooOld = run(folder, "env", "JAVA_HOME=" + folder.resolve("old"), command, "--version");

        assertThat(missing)
                .isEqualTo(new Result(
                        1,
                        "millrace: no Java is found in JAVA_HOME=/nowhere; install Java 17 or newer, or point JAVA_HOME at"
                                + " one\n"));
        assertThat(tooOld)
                .isEqualTo(new Result(
                        1, "millrace: Java 11 is too old: Millrace needs Java 17 or newer; point JAVA_HOME at one\n"));
    }

    /** Regular files below a folder with their sizes, by relative name. */
    private static Map<String, Long> sizes(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.filter(Files::isRegularFile)
                    .collect(Collectors.toMap(
                            file -> folder.relativize(file).toString(),
                            file -> {
                                try {
                                    return Files.size(file);
                                } catch (IOException e) {
                                    throw new UncheckedIOException(e);
                                }
                            },
                            (a, b) -> a,
                            TreeMap::new));
        }
    }

    private record Result(int status, String output) {}

    /** With the first compiler alone and without a folder for caches: preparing a faster start takes longer than what is tested. */
    private static Result run(Path where, String... command) throws IOException, InterruptedException {
        Path output = Files.createTempFile(folder, "output", ".txt");
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(where.toFile())
                .redirectErrorStream(true)
                .redirectInput(Path.of("/dev/null").toFile())
                .redirectOutput(output.toFile());
        builder.environment()
                .putAll(Map.of(
                        "XDG_CACHE_HOME", "/dev/null/none",
                        "MILLRACE_OPTS", "-XX:TieredStopAtLevel=1",
                        "JAVA_HOME", System.getProperty("java.home")));
        Process process = builder.start();
        try {
            return new Result(process.waitFor(), Files.readString(output));
        } finally {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
    }
}
