package dev.millrace.docs.mention;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Packages, classes, tests, modules and files mentioned in pages and READMEs exist. */
class MentionsTest {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Pattern NAME = Pattern.compile("\\bdev\\.millrace((?:\\.[a-z][a-z0-9]*)+)(?:\\.([A-Z]\\w+))?");
    private static final Pattern TEST = Pattern.compile("-D(?:it\\.)?test='?([A-Za-z+,]+)");
    private static final Pattern MODULES = Pattern.compile("-pl ([a-z/,-]+)");
    private static final Pattern WORD_AND = Pattern.compile("\\band\\b");
    private static final int ONE_SCREEN = 60;

    private static final Set<String> SOURCES =
            files(Path::toString, file -> file.toString().endsWith(".java"));

    @Test
    void shouldNameOnlyPackagesAndClassesThatAreThere() throws IOException {
        Map<String, String> strangers = new TreeMap<>();
        for (Path page : pages()) {
            for (Matcher name = NAME.matcher(Files.readString(page)); name.find(); ) {
                String path = "/dev/millrace" + name.group(1).replace('.', '/')
                        + (name.group(2) == null ? "/" : "/" + name.group(2) + ".java");
                if (SOURCES.stream().noneMatch(source -> source.contains(path))) {
                    strangers.put(name.group(), page.toString());
                }
            }
        }
        assertThat(strangers).isEmpty();
    }

    @Test
    void shouldNameOnlyTestsAndModulesThatAreThere() throws IOException {
        List<String> strangers = new ArrayList<>();
        for (Path page : pages()) {
            String text = Files.readString(page);
            for (Matcher tests = TEST.matcher(text); tests.find(); ) {
                for (String test : tests.group(1).split("[+,]")) {
                    if (!test.equals("None")
                            && SOURCES.stream().noneMatch(source -> source.endsWith("/" + test + ".java"))) {
                        strangers.add(page + ": " + test);
                    }
                }
            }
            for (Matcher modules = MODULES.matcher(text); modules.find(); ) {
                for (String module : modules.group(1).split(",")) {
                    if (!Files.isRegularFile(ROOT.resolve(module).resolve("pom.xml"))) {
                        strangers.add(page + ": -pl " + module);
                    }
                }
            }
        }
        assertThat(strangers).isEmpty();
    }

    @Test
    void shouldGiveEveryModuleAReadmeOfOneScreenAndOnePurpose() throws IOException {
        Matcher module = Pattern.compile("<module>(.*?)</module>").matcher(Files.readString(ROOT.resolve("pom.xml")));
        int modules = 0;
        while (module.find()) {
            Path readme = ROOT.resolve(module.group(1)).resolve("README.md");
            assertThat(readme).isRegularFile();
            List<String> lines = Files.readAllLines(readme);
            assertThat(lines).as(readme.toString()).hasSizeLessThanOrEqualTo(ONE_SCREEN);
            assertThat(lines.get(0)).as(readme.toString()).startsWith("# ");
            String purpose = lines.get(2).split("(?<=[.:]) ")[0];
            assertThat(WORD_AND.matcher(purpose).find())
                    .as(readme + " says its purpose in one sentence without 'and': " + purpose)
                    .isFalse();
            modules++;
        }
        assertThat(modules).isPositive();
    }

    private static List<Path> pages() throws IOException {
        return files(
                        Path::toString,
                        file -> file.toString().endsWith(".md")
                                && !file.toString().contains("/src/")
                                && (file.startsWith(ROOT.resolve("docs")) || file.endsWith("README.md")))
                .stream()
                .map(Path::of)
                .toList();
    }

    private static Set<String> files(
            java.util.function.Function<Path, String> name, java.util.function.Predicate<Path> wanted) {
        try (Stream<Path> files = Files.walk(ROOT, 18)) {
            return files.filter(file -> !file.toString().contains("/target/")
                            && !file.toString().contains("/.git/"))
                    .filter(wanted)
                    .map(name)
                    .collect(Collectors.toCollection(java.util.TreeSet::new));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
