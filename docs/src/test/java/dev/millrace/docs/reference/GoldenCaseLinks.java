package dev.millrace.docs.reference;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Where a kind of the algorithm is compared with other numbers. In order of preference: outputs of a public implementation, whose
 * cases name the kind; a test with numbers by hand, which names its class; a naive twin.
 */
final class GoldenCaseLinks {
    private static final Path TESTS = Path.of("..", "corrections", "src", "test");
    private static final Path GOLDEN = TESTS.resolve(Path.of("resources", "golden"));
    private static final Path TWINS =
            TESTS.resolve(Path.of("java", "dev", "millrace", "corrections", "objective", "TwinnedObjectives.java"));
    private static final Pattern METHODS =
            Pattern.compile("\\n    (?=@Test|@ParameterizedTest|/\\*\\*|private |static )");
    private static final Pattern COMPARES_NUMBERS = Pattern.compile("\\.(containsExactly|containsEntry|isCloseTo)\\(");

    /** Family of golden cases and the key of its configuration that names a kind, by extension point. */
    private static final Map<String, Map.Entry<String, String>> FAMILIES = Map.of(
            "algorithm.advantage", Map.entry("advantage", "adv_estimator"),
            "algorithm.weights", Map.entry("rollout_correction", "rollout_is"),
            "algorithm.objective", Map.entry("policy_loss", "loss_mode"));

    /** Cases that name a kind otherwise: verl's gspo is gspo_token. */
    private static final Map<String, String> OTHER_CASES = Map.of(
            "algorithm.masks m2po", "m2po",
            "algorithm.masks divergence_filter", "areal_rejection",
            "algorithm.objective sequence_sapo", "areal_decoupled_loss",
            "algorithm.objective gspo_token", "policy_loss",
            "algorithm.objective gspo", "areal_decoupled_loss");

    private static final Map<Path, List<String>> TEST_METHODS = methods();

    private GoldenCaseLinks() {}

    /**
     * A link for a cell.
     *
     * @param names of the kind
     * @param classes that compute it, by simple name
     */
    static Optional<String> of(String key, List<String> names, List<String> classes) {
        return reference(key, names)
                .or(() -> byHand(classes))
                .or(() -> named(read(TWINS), classes) ? Optional.of(link("twin", TWINS)) : Optional.empty());
    }

    private static Optional<String> reference(String key, List<String> names) {
        return names.stream()
                .map(name -> OTHER_CASES.get(key + " " + name))
                .filter(family -> family != null)
                .findFirst()
                .or(() -> Optional.ofNullable(FAMILIES.get(key))
                        .filter(family -> namedInCases(family.getKey(), family.getValue()).stream()
                                .anyMatch(names::contains))
                        .map(Map.Entry::getKey))
                .map(family -> link("reference", GOLDEN.resolve(family + ".json")));
    }

    private static Set<String> namedInCases(String family, String setting) {
        try {
            JsonNode cases = new ObjectMapper()
                    .readTree(GOLDEN.resolve(family + ".json").toFile())
                    .path("cases");
            return StreamSupport.stream(cases.spliterator(), false)
                    .map(one -> one.path("config").path(setting).asText())
                    .collect(Collectors.toSet());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The class's own test, or that with the most methods that name one of the classes and compare numbers. */
    private static Optional<String> byHand(List<String> classes) {
        return TEST_METHODS.entrySet().stream()
                .map(test -> Map.entry(test.getKey(), comparing(test.getValue(), classes)))
                .filter(test -> test.getValue() > 0)
                .max(Comparator.comparing((Map.Entry<Path, Long> test) ->
                                classes.stream().anyMatch(name -> test.getKey().endsWith(name + "Test.java")))
                        .thenComparing(Map.Entry::getValue)
                        .thenComparing(Map.Entry::getKey))
                .map(test -> link("hand", test.getKey()));
    }

    private static long comparing(List<String> methods, List<String> classes) {
        List<String> known = Stream.concat(
                        classes.stream(),
                        classes.stream()
                                .map(name -> Pattern.compile("static final " + name + " (\\w+) ="))
                                .flatMap(constant -> constant.matcher(String.join("\n", methods))
                                        .results())
                                .map((MatchResult constant) -> constant.group(1)))
                .toList();
        return methods.stream()
                .filter(method -> method.startsWith("@Test") && named(method, known))
                .filter(method -> COMPARES_NUMBERS.matcher(method).find())
                .count();
    }

    private static boolean named(String text, List<String> names) {
        return Pattern.compile("\\b(" + String.join("|", names) + ")\\b")
                .matcher(text)
                .find();
    }

    private static Map<Path, List<String>> methods() {
        try (Stream<Path> files = Files.walk(TESTS)) {
            return files.filter(file -> file.toString().endsWith("Test.java"))
                    .collect(Collectors.toMap(
                            file -> file, file -> List.of(METHODS.split(read(file))), (a, b) -> a, TreeMap::new));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String link(String text, Path file) {
        if (!Files.isRegularFile(file)) {
            throw new AssertionError("a golden case is missing: " + file);
        }
        return "[" + text + "](../" + file.toString().replace('\\', '/') + ")";
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
