package dev.millrace.docs.site;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The table of contents: headings of the second level, and under each the pages in order. A folder stands for the pages
 * in it that have not been named before.
 *
 * @param sections in the order of the file
 */
record Contents(List<Section> sections) {
    private static final Pattern HEADING = Pattern.compile("##\\s+(.+)");
    private static final Pattern PAGE = Pattern.compile("[-*]\\s+\\[(.+?)]\\((.+?)\\)\\s*");

    /** Some pages under one heading. */
    record Section(String title, List<Entry> entries) {}

    /**
     * A page as the navigation shows it.
     *
     * @param source absolute and normalised
     * @param target where the site has it, with forward slashes and relative to the site's root
     */
    record Entry(String title, Path source, String target) {}

    /**
     * Reads the table of contents of a folder of pages.
     *
     * @param pages the folder with {@code contents.md}
     * @throws SiteException if a line is neither a heading nor a page, or a page comes twice
     */
    static Contents read(Path pages) {
        Path file = pages.resolve("contents.md");
        List<Section> sections = new ArrayList<>();
        List<Path> seen = new ArrayList<>();
        for (String line : lines(file)) {
            Matcher heading = HEADING.matcher(line);
            Matcher page = PAGE.matcher(line);
            if (heading.matches()) {
                sections.add(new Section(heading.group(1).strip(), new ArrayList<>()));
            } else if (page.matches() && !sections.isEmpty()) {
                for (Entry entry : entries(pages, page.group(1), page.group(2), seen)) {
                    if (seen.contains(entry.source())) {
                        throw new SiteException(file + " names " + page.group(2) + " twice; name each page once");
                    }
                    seen.add(entry.source());
                    sections.get(sections.size() - 1).entries().add(entry);
                }
            } else if (!line.isBlank() && !line.startsWith("# ")) {
                throw new SiteException(
                        file + " has a line that is neither '## Section' nor '- [Title](page.md)': " + line);
            }
        }
        return new Contents(List.copyOf(sections));
    }

    /** Pages in the order of the contents. */
    List<Entry> entries() {
        return sections.stream().flatMap(section -> section.entries().stream()).toList();
    }

    /** One page; or, of a folder, those that are not named yet, by their headings. */
    private static List<Entry> entries(Path pages, String title, String link, List<Path> seen) {
        Path source = pages.resolve(link).normalize().toAbsolutePath();
        if (!link.endsWith("/")) {
            return List.of(new Entry(title, source, target(pages, source)));
        }
        try (Stream<Path> files = Files.list(source)) {
            return files.filter(file -> file.toString().endsWith(".md"))
                    .filter(file -> !seen.contains(file))
                    .sorted()
                    .map(file -> new Entry(lines(file).get(0).replaceFirst("^#\\s+", ""), file, target(pages, file)))
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException("a folder of pages cannot be read: " + source, e);
        }
    }

    /** A page that lies outside of the folder is put among the references, under its own name. */
    private static String target(Path pages, Path source) {
        Path root = pages.toAbsolutePath().normalize();
        String inside = source.startsWith(root)
                ? root.relativize(source).toString().replace('\\', '/')
                : "reference/" + source.getFileName();
        return inside.replaceFirst("\\.md$", ".html");
    }

    private static List<String> lines(Path file) {
        try {
            return Files.readAllLines(file);
        } catch (IOException e) {
            throw new UncheckedIOException("the table of contents cannot be read: " + file, e);
        }
    }
}
