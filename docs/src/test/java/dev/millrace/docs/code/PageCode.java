package dev.millrace.docs.code;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** The program on a page, compiled as a reader would. Closing it forgets its classes. */
final class PageCode implements AutoCloseable {
    private final URLClassLoader classes;

    private PageCode(URLClassLoader classes) {
        this.classes = classes;
    }

    /**
     * Compiles the first Java program of a page.
     *
     * @param page under {@code docs/}
     * @param folder for sources and classes
     */
    static PageCode compile(String page, Path folder) throws IOException {
        String program = block(page, "java");
        Matcher type = Pattern.compile("public class (\\w+)").matcher(program);
        assertThat(type.find()).as(page + " has a public class").isTrue();
        Path source = Files.writeString(folder.resolve(type.group(1) + ".java"), program);
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> problems = new DiagnosticCollector<>();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(problems, null, null)) {
            List<String> options = List.of(
                    "-d",
                    folder.toString(),
                    "-cp",
                    System.getProperty("java.class.path"),
                    "--release",
                    "17",
                    "-Xlint:all");
            boolean compiled = compiler.getTask(null, files, problems, options, null, files.getJavaFileObjects(source))
                    .call();
            assertThat(compiled).as(page + ": " + problems.getDiagnostics()).isTrue();
        }
        return new PageCode(new URLClassLoader(new URL[] {folder.toUri().toURL()}, PageCode.class.getClassLoader()));
    }

    /** The first fenced block of a page in this language. */
    static String block(String page, String language) throws IOException {
        Matcher fence = Pattern.compile("```" + language + "\\n(.*?)```", Pattern.DOTALL)
                .matcher(Files.readString(Path.of(page)));
        assertThat(fence.find()).as(page + " has " + language).isTrue();
        return fence.group(1);
    }

    Class<?> type(String name) throws ClassNotFoundException {
        return classes.loadClass(name);
    }

    @Override
    public void close() throws IOException {
        classes.close();
    }
}
