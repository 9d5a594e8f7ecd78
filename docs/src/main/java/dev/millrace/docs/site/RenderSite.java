package dev.millrace.docs.site;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Renders {@code docs/} of a repository into a folder. */
public final class RenderSite {
    private static final String STYLE = "site.css";

    private RenderSite() {}

    /**
     * @param arguments the repository's root, and the folder for the site; what lies there is replaced
     * @throws SiteException if a link of any page leads nowhere; then nothing was written
     */
    public static void main(String[] arguments) throws IOException {
        Path repository = Path.of(arguments[0]).toAbsolutePath().normalize();
        Path site = Path.of(arguments[1]).toAbsolutePath().normalize();
        int pages = render(repository, site);
        System.out.println(pages + " pages in " + site.resolve("index.html"));
    }

    /** Renders all pages; how many there are. */
    static int render(Path repository, Path site) throws IOException {
        Path folder = repository.resolve("docs");
        Markdown markdown = new Markdown();
        Contents contents = Contents.read(folder);
        Map<Path, Page> pages = new LinkedHashMap<>();
        Map<Path, Set<String>> anchors = new LinkedHashMap<>();
        for (Contents.Entry entry : contents.entries()) {
            Page page = Page.read(entry, markdown);
            pages.put(entry.source(), page);
            anchors.put(entry.source(), markdown.anchors(page.document()));
        }
        Links links = new Links(repository, pages, anchors);
        pages.values().forEach(links::rewrite);
        List<String> problems = new ArrayList<>(links.problems());
        problems.addAll(forgotten(folder, pages.keySet()));
        if (!problems.isEmpty()) {
            throw new SiteException(String.join("\n", problems));
        }
        write(site, contents, pages.values(), links, markdown);
        return pages.size();
    }

    /** Pages in the folder that the contents do not name. */
    private static List<String> forgotten(Path folder, Set<Path> named) throws IOException {
        List<String> problems = new ArrayList<>();
        Files.walkFileTree(folder, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes) {
                String name = directory.getFileName().toString();
                return name.equals("src") || name.equals("target")
                        ? FileVisitResult.SKIP_SUBTREE
                        : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                String name = file.getFileName().toString();
                boolean page = name.endsWith(".md") && !name.equals("contents.md") && !name.equals("README.md");
                if (page && !named.contains(file)) {
                    problems.add("contents.md does not name " + file);
                }
                return FileVisitResult.CONTINUE;
            }
        });
        return problems;
    }

    private static void write(Path site, Contents contents, Iterable<Page> pages, Links links, Markdown markdown)
            throws IOException {
        PageTemplate template = new PageTemplate(contents);
        for (Page page : pages) {
            Path file = site.resolve(page.entry().target());
            Files.createDirectories(file.getParent());
            Files.writeString(file, template.html(page, markdown.html(page.document())));
        }
        for (Map.Entry<String, Path> copy : links.files().entrySet()) {
            Path file = site.resolve(copy.getKey());
            Files.createDirectories(file.getParent());
            Files.copy(copy.getValue(), file, StandardCopyOption.REPLACE_EXISTING);
        }
        try (InputStream style = RenderSite.class.getResourceAsStream(STYLE)) {
            Files.copy(style, site.resolve(STYLE), StandardCopyOption.REPLACE_EXISTING);
        }
    }
}
