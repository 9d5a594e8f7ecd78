package dev.millrace.policy.tokenizer;

import com.hubspot.jinjava.el.TypeConvertingMapELResolver;
import com.hubspot.jinjava.el.ext.JinjavaBeanELResolver;
import com.hubspot.jinjava.el.ext.JinjavaListELResolver;
import com.hubspot.jinjava.lib.exptest.ExpTest;
import com.hubspot.jinjava.lib.filter.Filter;
import com.hubspot.jinjava.objects.collections.PyList;
import com.hubspot.jinjava.util.ForLoop;
import dev.millrace.policy.tokenizer.TemplateSandbox.RefusedByTemplateException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import jinjava.javax.el.CompositeELResolver;
import jinjava.javax.el.ELContext;
import jinjava.javax.el.ELResolver;
import org.jspecify.annotations.Nullable;

/**
 * The properties and methods that a template's values have: those of Python's texts, lists and dictionaries that chat templates call, and none
 * of Java's.
 */
final class PythonMethods extends ELResolver {
    private static final String WHITE = " \t\n\r\f\u000b";

    private static final Set<String> OF_DICTIONARY = Set.of("items", "keys", "values", "get");

    /** Of the library; looks at its own loops, filters and tests, which are no values of a template. */
    private final JinjavaBeanELResolver own = new JinjavaBeanELResolver(true);

    private final boolean strict;

    private PythonMethods(boolean strict) {
        this.strict = strict;
    }

    /** @param strict whether a key that a dictionary has not is refused; otherwise it is nothing */
    static ELResolver resolver(boolean strict) {
        CompositeELResolver resolver = new CompositeELResolver();
        resolver.add(new PythonMethods(strict));
        resolver.add(new JinjavaListELResolver(true));
        resolver.add(new TypeConvertingMapELResolver(true));
        return resolver;
    }

    @Override
    public @Nullable Object getValue(ELContext context, @Nullable Object base, Object property) {
        if (base instanceof ForLoop) {
            return own.getValue(context, base, property);
        }
        if (base instanceof List<?> list && property instanceof Number number) {
            context.setPropertyResolved(true);
            int index = number.intValue() < 0 ? number.intValue() + list.size() : number.intValue();
            return index >= 0 && index < list.size() ? list.get(index) : null;
        }
        if (strict
                && base instanceof Map<?, ?> map
                && !map.containsKey(property)
                && !OF_DICTIONARY.contains(String.valueOf(property))) { // a method is asked for as a value first
            throw new RefusedByTemplateException("there is no \"" + property + "\" in the row");
        }
        return null;
    }

    @Override
    public @Nullable Object invoke(
            ELContext context,
            @Nullable Object base,
            Object method,
            Class<?> @Nullable [] types,
            Object @Nullable [] given) {
        if (base instanceof Filter || base instanceof ExpTest) {
            return own.invoke(context, base, method, types, given);
        }
        context.setPropertyResolved(true);
        Object[] arguments = given == null ? new Object[0] : given;
        String call = method + "/" + arguments.length;
        if (base instanceof String text) {
            return ofText(text, call, arguments);
        }
        if (base instanceof Map<?, ?> map) {
            return ofDictionary(map, call, arguments);
        }
        if (base instanceof PyList list && call.equals("append/1")) {
            return list.append(arguments[0]);
        }
        throw unknown(call);
    }

    private static @Nullable Object ofDictionary(Map<?, ?> map, String call, Object[] arguments) {
        return switch (call) {
            case "items/0" ->
                map.entrySet().stream()
                        .map(entry -> new PyList(new ArrayList<>(Arrays.asList(entry.getKey(), entry.getValue()))))
                        .toList();
            case "keys/0" -> new ArrayList<Object>(map.keySet());
            case "values/0" -> new ArrayList<Object>(map.values());
            case "get/1" -> map.get(arguments[0]);
            case "get/2" -> map.containsKey(arguments[0]) ? map.get(arguments[0]) : arguments[1];
            default -> throw unknown(call);
        };
    }

    private static Object ofText(String text, String call, Object[] arguments) {
        String first = arguments.length > 0 ? String.valueOf(arguments[0]) : "";
        return switch (call) {
            case "startswith/1" -> text.startsWith(first);
            case "endswith/1" -> text.endsWith(first);
            case "strip/0" -> stripped(text, WHITE, true, true);
            case "strip/1" -> stripped(text, first, true, true);
            case "lstrip/0" -> stripped(text, WHITE, true, false);
            case "lstrip/1" -> stripped(text, first, true, false);
            case "rstrip/0" -> stripped(text, WHITE, false, true);
            case "rstrip/1" -> stripped(text, first, false, true);
            case "split/0" -> list(stripped(text, WHITE, true, true).split("[" + WHITE + "]+", -1));
            case "split/1" -> list(text.split(Pattern.quote(first), -1));
            case "upper/0" -> text.toUpperCase(Locale.ROOT);
            case "lower/0" -> text.toLowerCase(Locale.ROOT);
            case "replace/2" -> replaced(text, first, String.valueOf(arguments[1]));
            case "find/1" -> (long) text.indexOf(first);
            case "count/1" -> (long) (text.split(Pattern.quote(first), -1).length - 1);
            default -> throw unknown(call);
        };
    }

    private static String replaced(String text, String what, String by) {
        long places = what.isEmpty() ? text.length() + 1L : text.split(Pattern.quote(what), -1).length - 1L;
        if (text.length() + places * by.length() > TemplateSandbox.MOST_CHARACTERS) {
            throw new RefusedByTemplateException(
                    "it makes a text of more than " + TemplateSandbox.MOST_CHARACTERS + " characters");
        }
        return text.replace(what, by);
    }

    private static RefusedByTemplateException unknown(String call) {
        return new RefusedByTemplateException("it calls " + call.replace("/", " with ")
                + " arguments, which is no method of texts, lists and dictionaries that is known here");
    }

    private static PyList list(String[] parts) {
        if (parts.length > TemplateSandbox.MOST_ELEMENTS) {
            throw new RefusedByTemplateException(
                    "it splits a text into " + parts.length + " parts, more than " + TemplateSandbox.MOST_ELEMENTS);
        }
        return new PyList(new ArrayList<>(Arrays.asList((Object[]) parts)));
    }

    private static String stripped(String text, String characters, boolean left, boolean right) {
        int from = 0;
        int to = text.length();
        while (left && from < to && characters.indexOf(text.charAt(from)) >= 0) {
            from++;
        }
        while (right && to > from && characters.indexOf(text.charAt(to - 1)) >= 0) {
            to--;
        }
        return text.substring(from, to);
    }

    @Override
    public @Nullable Class<?> getType(ELContext context, @Nullable Object base, Object property) {
        return null;
    }

    @Override
    public void setValue(ELContext context, @Nullable Object base, Object property, @Nullable Object value) {
        throw new RefusedByTemplateException("it writes to " + property);
    }

    @Override
    public boolean isReadOnly(ELContext context, @Nullable Object base, Object property) {
        return true;
    }

    @Override
    public java.util.@Nullable Iterator<java.beans.FeatureDescriptor> getFeatureDescriptors(
            ELContext context, @Nullable Object base) {
        return null;
    }

    @Override
    public Class<?> getCommonPropertyType(ELContext context, @Nullable Object base) {
        return Object.class;
    }
}
