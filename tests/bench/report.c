/* Clocks, medians, and the rows of the report. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

static int rows_met, rows_missed;

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int double_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double percentile(double *values, size_t n, double p)
{
    qsort(values, n, sizeof(*values), double_order);
    double at = p / 100 * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? values[i] + (at - (double)i) * (values[i + 1] - values[i]) : values[n - 1];
}

void series_add(series *s, double value)
{
    if (s->n < SERIES_MAX)
        s->at[s->n++] = value;
}

double series_median(const series *s)
{
    series copy = *s;
    return percentile(copy.at, (size_t)copy.n, 50);
}

static const char *verdict(double value, int way, double target)
{
    if (way == JUST_SHOWN)
        return "";
    int met = way == AT_LEAST ? value >= target : value <= target;
    rows_met += met;
    rows_missed += !met;
    return met ? "met" : "NOT MET";
}

void report_head(const char *title, const char *what)
{
    printf("\n%s: %s\n", title, what);
}

static void target_text(char *out, size_t size, int way, double target)
{
    if (way == JUST_SHOWN)
        *out = '\0';
    else
        snprintf(out, size, "%s %g", way == AT_LEAST ? ">=" : "<=", target);
}

void report_ratio(const char *label, const series *ours, const series *limit, double mb, int way,
                  double target)
{
    series ratios = {.n = 0};
    char want[32], context[80];
    for (int i = 0; i < ours->n && i < limit->n; i++)
        series_add(&ratios, limit->at[i] / ours->at[i]);
    double median = percentile(ratios.at, (size_t)ratios.n, 50);
    double a = series_median(ours), b = series_median(limit);
    if (mb > 0)
        snprintf(context, sizeof(context), "%.0f of %.0f MB/s", mb / a, mb / b);
    else
        snprintf(context, sizeof(context), "%.3g against %.3g ms", a * 1e3, b * 1e3);
    target_text(want, sizeof(want), way, target);
    printf("  %-50s %6.2f (%.2f..%.2f)  %-8s %-8s %s\n", label, median, ratios.at[0],
           ratios.at[ratios.n - 1], want, verdict(median, way, target), context);
}

void report_value(const char *label, double value, const char *unit, int way, double target,
                  const char *context)
{
    char want[32], number[48];
    target_text(want, sizeof(want), way, target);
    if (fabs(value) >= 1000)
        snprintf(number, sizeof(number), "%.0f %s", value, unit);
    else
        snprintf(number, sizeof(number), "%.3g %s", value, unit);
    printf("  %-50s %-19s  %-8s %-8s %s\n", label, number, want, verdict(value, way, target),
           context != NULL ? context : "");
}

void report_total(void)
{
    printf("\n%d met, %d not met\n", rows_met, rows_missed);
}
