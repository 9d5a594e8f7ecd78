package dev.millrace.cli.documents;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The pages of the repository, and what they tell people to type. */
final class DocumentPages {
    static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    static final Pattern FENCE =
            Pattern.compile("^[ ]*```([a-z]*)\\n(.*?)^[ ]*```", Pattern.DOTALL | Pattern.MULTILINE);

    private static final Pattern INLINE = Pattern.compile("`(\\./millrace [^`]*--[^`]+)`");
    private static final Pattern SHELL = Pattern.compile("(sh|bash)?");
    private static final Pattern COMMAND = Pattern.compile("(\\./|infra/|\\(cd |[A-Z_a-z]+=\"?[^ ]"
            + "|(python3?|pip|curl|echo|cd|export|java|for|node|cat|vllm|kafka-acls|helm) ).*");

    private DocumentPages() {}

    /** Every README and CONTRIBUTING, and every page under {@code docs/}. */
    static List<Path> all() throws IOException {
        try (Stream<Path> files = Files.walk(ROOT, 5)) {
            return files.filter(file -> file.toString().endsWith(".md"))
                    .filter(file -> List.of("README.md", "CONTRIBUTING.md")
                                    .contains(file.getFileName().toString())
                            || file.startsWith(ROOT.resolve("docs")))
                    .filter(file -> !file.toString().contains("/target/")
                            && !file.toString().contains("/node_modules/"))
                    .sorted()
                    .toList();
        }
    }

    /** The lines of a page's fenced commands, continued ones joined and without comments, block by block. */
    static List<List<String>> blocks(Path page) {
        List<List<String>> blocks = new ArrayList<>();
        for (Matcher fence = FENCE.matcher(text(page)); fence.find(); ) {
            if (SHELL.matcher(fence.group(1)).matches()) {
                List<String> lines = Arrays.stream(
                                fence.group(2).replaceAll("\\\\\\n\\s*", "").split("\n"))
                        .map(line -> line.replaceFirst("\\s#\\s.*", "").strip())
                        .filter(line -> !line.isEmpty())
                        .toList();
                if (!lines.isEmpty() && COMMAND.matcher(lines.get(0)).matches()) {
                    blocks.add(lines);
                }
            }
        }
        return blocks;
    }

    /** Commands with options that the sentences and tables of a page name. */
    static List<String> inSentences(Path page) {
        return INLINE.matcher(FENCE.matcher(text(page)).replaceAll(""))
                .results()
                .map(command -> command.group(1).replaceAll("\\s+", " "))
                .distinct()
                .toList();
    }

    /** The page's source. */
    static String text(Path page) {
        try {
            return Files.readString(page);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
