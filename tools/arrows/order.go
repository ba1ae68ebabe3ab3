package main

import (
	"math/rand/v2"
	"slices"
)

// restarts is how many random orders are improved for each circle of files. More found
// no better order for any package.
const restarts = 60

// order returns the files so that few edges lead from a later file to an earlier one. It
// treats each strongly connected component apart, because no edge between two of them
// needs to go back up. Within one it starts from random orders, moves one file at a time
// to its best place until no move helps, and keeps the best result. The random numbers
// are the same in each run.
func order(edges [][]bool) []int {
	var out []int
	for _, c := range components(edges) {
		out = append(out, orderCircle(edges, c)...)
	}
	return out
}

func orderCircle(edges [][]bool, files []int) []int {
	if len(files) < 3 {
		return files
	}
	random := rand.New(rand.NewPCG(1, uint64(len(files))))
	var best []int
	fewest := -1
	for range restarts {
		o := slices.Clone(files)
		random.Shuffle(len(o), func(i, j int) { o[i], o[j] = o[j], o[i] })
		improve(edges, o)
		if n := backUp(edges, o); fewest < 0 || n < fewest {
			best, fewest = o, n
		}
	}
	return best
}

// improve moves single files until no move leaves fewer edges back up.
func improve(edges [][]bool, o []int) {
	for moved := true; moved; {
		moved = false
		for i := range o {
			f, best, at := o[i], 0, i
			// To carry f down past g turns f's edge to g back up, and g's to f right.
			for gain, j := 0, i+1; j < len(o); j++ {
				gain += count(edges[o[j]][f]) - count(edges[f][o[j]])
				if gain > best {
					best, at = gain, j
				}
			}
			for gain, j := 0, i-1; j >= 0; j-- {
				gain += count(edges[f][o[j]]) - count(edges[o[j]][f])
				if gain > best {
					best, at = gain, j
				}
			}
			if at != i {
				o = slices.Insert(slices.Delete(o, i, i+1), at, f)
				moved = true
			}
		}
	}
}

func backUp(edges [][]bool, o []int) (n int) {
	for i, f := range o {
		for _, g := range o[:i] {
			n += count(edges[f][g])
		}
	}
	return n
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// components returns the strongly connected components, those that use others first
// (Tarjan's algorithm yields them the other way round).
func components(edges [][]bool) (out [][]int) {
	n := len(edges)
	index, low, on := make([]int, n), make([]int, n), make([]bool, n)
	var stack []int
	next := 1
	var visit func(v int)
	visit = func(v int) {
		index[v], low[v] = next, next
		next++
		stack, on[v] = append(stack, v), true
		for w, edge := range edges[v] {
			switch {
			case !edge:
			case index[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case on[w]:
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		c := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, w := range c {
			on[w] = false
		}
		slices.Sort(c)
		out = append(out, c)
	}
	for v := range n {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.Reverse(out)
	return out
}
